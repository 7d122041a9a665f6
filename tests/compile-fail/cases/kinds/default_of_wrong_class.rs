//! Literal defaults of another type.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(default = "1")]
    pub replicas: i32,
    #[opkit(default = 1)]
    pub image: String,
    #[opkit(default = "a")]
    pub tags: Vec<String>,
    #[opkit(default = 1)]
    pub on: bool,
}
