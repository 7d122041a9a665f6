//! A message of two lines, and an empty message.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(rule("self > 0", message = "a\nb"))]
    pub replicas: i32,
    #[opkit(rule("self > 0", message = " "))]
    pub size: i32,
}
