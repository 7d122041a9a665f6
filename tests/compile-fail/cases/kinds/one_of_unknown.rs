//! Fields of `exactly_one_of` and others that do not exist.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(exactly_one_of(host, prt))]
#[opkit(at_most_one_of(host, color))]
pub struct RobotSpec {
    pub host: Option<String>,
    pub port: Option<i32>,
}
