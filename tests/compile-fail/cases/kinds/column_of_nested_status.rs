//! A column of a field that a type in the status does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus)]
#[opkit(printcolumn("Node", path = ".status.node.nme"))]
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
