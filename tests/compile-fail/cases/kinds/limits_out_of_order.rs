//! Lower limits above upper limits.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(min = 2, max = 1)]
    pub a: i32,
    #[opkit(min_length = 2, max_length = 1)]
    pub b: String,
    #[opkit(min_items = 2, max_items = 1)]
    pub c: Vec<i32>,
    #[opkit(min_properties = 2, max_properties = 1)]
    pub d: BTreeMap<String, i32>,
    #[opkit(exclusive_min = 2, max = 1)]
    pub e: i32,
}
