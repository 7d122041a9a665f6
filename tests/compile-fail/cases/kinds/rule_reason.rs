//! A reason that API servers do not know.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(rule("self > 0", reason = TooSmall))]
    pub replicas: i32,
}
