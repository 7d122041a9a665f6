//! A rule that uses the Rust name of a field.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.max_replicas < 10"))]
pub struct RobotSpec {
    pub max_replicas: i32,
}
