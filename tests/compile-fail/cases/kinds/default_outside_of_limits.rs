//! Defaults that other limits forbid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(default = 0, exclusive_min = 0)]
    pub a: i32,
    #[opkit(default = 9, exclusive_max = 9)]
    pub b: i32,
    #[opkit(default = 7, multiple_of = 5)]
    pub c: i32,
    #[opkit(default = "abc", max_length = 2)]
    pub d: String,
    #[opkit(default = ["a"], min_items = 2)]
    pub e: Vec<String>,
}
