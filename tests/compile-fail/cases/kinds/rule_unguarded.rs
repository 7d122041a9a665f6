//! A rule that reads an optional field without a guard.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(rule("self.minReplicas <= self.replicas"))]
#[opkit(rule("self.tags.size() < 3"))]
pub struct RobotSpec {
    pub replicas: i32,
    pub min_replicas: Option<i32>,
    pub tags: Vec<String>,
}
