//! An apply configuration of a kind whose status has none.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus, apply)]
pub struct RobotSpec {
    pub image: String,
}

#[opkit::status]
pub struct RobotStatus {
    pub node: Option<Node>,
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}

#[opkit::schema]
pub struct Node {
    pub name: String,
}
