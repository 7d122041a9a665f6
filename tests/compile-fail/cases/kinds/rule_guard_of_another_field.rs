//! A guard of another field.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("!has(self.first) || self.second > 0"))]
pub struct RobotSpec {
    pub first: Option<i32>,
    pub second: Option<i32>,
}
