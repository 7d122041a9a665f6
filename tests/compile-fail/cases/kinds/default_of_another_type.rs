//! A default of another type than its field.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(default = "three")]
    pub replicas: i32,
}
