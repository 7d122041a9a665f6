//! A rule without an expression.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(rule(message = "no"))]
    pub replicas: i32,
}
