//! A string without its end in a rule.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.image != 'a"))]
pub struct RobotSpec {
    pub image: String,
}
