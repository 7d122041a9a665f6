//! A rule with a field that a nested struct does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.node.sise < 3 && self.node.size > 0"))]
pub struct RobotSpec {
    pub node: Node,
}

#[opkit::schema]
pub struct Node {
    pub size: i32,
}
