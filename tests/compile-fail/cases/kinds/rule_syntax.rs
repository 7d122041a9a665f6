//! A rule that is not a CEL expression.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.replicas >"))]
pub struct RobotSpec {
    pub replicas: i32,
}
