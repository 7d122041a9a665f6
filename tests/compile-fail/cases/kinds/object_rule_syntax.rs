//! A rule of the whole object that is not valid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(object_rule("self.metadata.name..size() < 3"))]
pub struct RobotSpec {
    pub replicas: i32,
}
