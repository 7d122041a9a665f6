//! A transition rule that reads an optional field of the old object without a guard.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("!has(self.size) || self.size >= oldSelf.size"))]
pub struct RobotSpec {
    pub size: Option<i32>,
}
