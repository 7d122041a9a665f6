//! A key that the items do not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(list_map = "title")]
    pub tools: Vec<Tool>,
}

#[opkit::schema]
pub struct Tool {
    pub size: i32,
    pub name: Option<String>,
}
