//! A rule of several lines without a message.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.replicas
    > 0"))]
pub struct RobotSpec {
    pub replicas: i32,
}
