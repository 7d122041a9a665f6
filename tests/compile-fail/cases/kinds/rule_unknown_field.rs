//! A rule with a field that the struct does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.replica < 10"))]
pub struct RobotSpec {
    pub replicas: i32,
    pub min_replicas: Option<i32>,
}
