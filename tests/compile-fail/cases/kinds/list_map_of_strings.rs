//! Keys of a list of strings.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(list_map = "name")]
    pub tools: Vec<String>,
}
