//! A key that the items may leave out.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(list_map = ["size", "name"])]
    pub tools: Vec<Tool>,
}

/// A list with a key that is a struct.
#[opkit::schema]
#[opkit(list_map = "tool")]
pub struct Boxes(Vec<Chest>);

#[opkit::schema]
pub struct Chest {
    pub tool: Tool,
}

#[opkit::schema]
pub struct Tool {
    pub size: i32,
    pub name: Option<String>,
}
