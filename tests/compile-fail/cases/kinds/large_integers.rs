//! Integers that Kubernetes does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    pub a: i128,
    pub b: Option<u128>,
}
