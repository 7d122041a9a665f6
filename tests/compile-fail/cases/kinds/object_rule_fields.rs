//! Rules of the whole object with fields that it does not have, or that rules cannot see.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(object_rule("self.metadata.labels.size() < 3"))]
#[opkit(object_rule("self.replicas < 3"))]
#[opkit(object_rule("self.spec.replica < 3"))]
#[opkit(object_rule("!has(self.status.ready) || self.status.ready"))]
pub struct RobotSpec {
    pub replicas: i32,
}
