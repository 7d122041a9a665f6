//! A rule with a field that is not similar to any other.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.color == 'red'"))]
pub struct RobotSpec {
    pub image: String,
    pub replicas: i32,
}
