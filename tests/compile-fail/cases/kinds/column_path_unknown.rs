//! A column of a field that the spec does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(printcolumn("Image", path = ".spec.images"))]
pub struct RobotSpec {
    pub image: String,
}
