//! Escape sequences that Go does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(pattern = "^\\Z")]
    pub image: String,
    #[opkit(items(pattern = "\\q"))]
    pub names: Vec<String>,
}
