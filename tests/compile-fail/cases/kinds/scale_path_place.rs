//! Paths of `scale` below the wrong part, or with more than field names.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus, scale(spec_replicas_path = ".status.replicas", status_replicas_path = ".status.replicas"))]
pub struct RobotSpec {
    pub replicas: i32,
}

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus, kind = "Other", scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes[0]"))]
pub struct OtherSpec {
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
