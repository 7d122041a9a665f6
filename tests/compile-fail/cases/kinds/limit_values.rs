//! Limits that are not valid numbers.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(min_length = -1)]
    pub a: String,
    #[opkit(min = 1.5)]
    pub b: i32,
    #[opkit(multiple_of = 0)]
    pub c: i32,
    #[opkit(max = "3")]
    pub d: i32,
    #[opkit(max = 99999999999999999999)]
    pub e: i64,
}
