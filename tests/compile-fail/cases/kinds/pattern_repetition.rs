//! A repetition above the limit of Go, which Rust accepts.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(pattern = "^a{2000}$")]
    pub image: String,
    #[opkit(pattern = "^a**$")]
    pub name: String,
}
