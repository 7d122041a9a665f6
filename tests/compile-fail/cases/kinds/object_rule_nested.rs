//! A rule of the whole object with a field that the status does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus)]
#[opkit(object_rule("!has(self.status) || !has(self.status.node) || self.status.node != ''"))]
pub struct RobotSpec {
    pub replicas: i32,
}

#[opkit::status]
pub struct RobotStatus {
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}
