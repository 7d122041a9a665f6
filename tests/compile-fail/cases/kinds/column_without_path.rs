//! Printer columns without a path.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(printcolumn("Ready"), printcolumn("Node", path = "status.node"))]
pub struct RobotSpec {
    #[opkit(printcolumn("Image", path = ".spec.image"))]
    pub image: String,
}
