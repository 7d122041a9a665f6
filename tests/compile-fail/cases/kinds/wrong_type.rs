//! Arguments that are not valid for the type of their field.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(min = 1)]
    pub image: String,
    #[opkit(max_length = 1)]
    pub sizes: Vec<i32>,
    #[opkit(pattern = "^a$")]
    pub replicas: i32,
    #[opkit(nullable)]
    pub name: String,
    #[opkit(values(max_length = 1))]
    pub names: Vec<String>,
    #[opkit(required)]
    pub color: Option<String>,
}
