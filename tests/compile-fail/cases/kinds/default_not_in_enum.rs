//! A default that is not one of the values.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(default = 4, enum(1, 2, 3))]
    pub level: i32,
}
