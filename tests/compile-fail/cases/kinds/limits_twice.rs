//! A limit in both forms.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(min = 1, exclusive_min = 1)]
    pub a: i32,
}
