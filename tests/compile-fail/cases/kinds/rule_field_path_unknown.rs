//! A field path of a field that does not exist.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.replicas > 1", field = ".replica"))]
pub struct RobotSpec {
    pub replicas: i32,
}
