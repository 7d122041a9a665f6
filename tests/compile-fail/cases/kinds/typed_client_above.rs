//! A derive above the attribute that it needs.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[derive(TypedClient)]
#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    pub replicas: i32,
}
