//! A field of `at_least_one_of` that is always set.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(at_least_one_of(host, port))]
pub struct RobotSpec {
    pub host: String,
    pub port: Option<i32>,
}
