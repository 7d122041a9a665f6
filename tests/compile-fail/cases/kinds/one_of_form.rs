//! Forms of `exactly_one_of` that are not valid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(exactly_one_of = "host")]
#[opkit(at_most_one_of(host, host))]
pub struct RobotSpec {
    pub host: Option<String>,
    pub port: Option<i32>,
}
