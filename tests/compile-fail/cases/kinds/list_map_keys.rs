//! Keys that are missing, or are written twice.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(list_map)]
    pub tools: Vec<Tool>,
    #[opkit(list_map = ["size", "size"])]
    pub more: Vec<Tool>,
}

#[opkit::schema]
pub struct Tool {
    pub size: i32,
    pub name: Option<String>,
}
