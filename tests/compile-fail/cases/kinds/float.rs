//! Floats, which objects should not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    pub speed: f64,
    pub speeds: Option<Vec<f32>>,
}
