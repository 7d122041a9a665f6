//! A path outside of the object's parts.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(printcolumn("Image", path = ".data.image"))]
pub struct RobotSpec {
    pub image: String,
}
