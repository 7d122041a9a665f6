//! Paths of `scale` to fields that do not exist.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus, scale(spec_replicas_path = ".spec.replica", status_replicas_path = ".status.node"))]
pub struct RobotSpec {
    pub replicas: i32,
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
