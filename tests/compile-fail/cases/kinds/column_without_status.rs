//! A column of the status of a kind that has none.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(printcolumn("Node", path = ".status.node"))]
pub struct RobotSpec {
    pub image: String,
}
