//! `uniqueItems`, which API servers refuse.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(unique_items)]
    pub tags: Vec<String>,
}
