//! Defaults outside of the limits of the field.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(default = 200, min = 0, max = 100)]
    pub replicas: i32,
    #[opkit(max = -1, default = -200, min = -100)]
    pub offset: i32,
    #[opkit(default = "", min_length = 1)]
    pub image: String,
    #[opkit(min = 3, max = 2)]
    pub size: i32,
    #[opkit(default = 1)]
    pub count: Option<i32>,
}
