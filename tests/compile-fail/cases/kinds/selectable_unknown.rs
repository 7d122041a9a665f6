//! A selectable field that does not exist.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, selectable = ".spec.color")]
pub struct RobotSpec {
    pub image: String,
}
