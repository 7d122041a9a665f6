//! A pattern that Go cannot parse.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(pattern = "^[a-z$")]
    pub image: String,
}
