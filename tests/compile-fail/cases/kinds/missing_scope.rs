//! Kinds without scope, version, group or name.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1")]
pub struct RobotSpec {
    pub replicas: i32,
}

#[opkit::kind(group = "example.com", namespaced)]
pub struct ArmSpec {
    pub length: i32,
}

#[opkit::kind(group = "Example.com", version = "v1", namespaced)]
pub struct LegSpec {
    pub length: i32,
}

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct Head {
    pub size: i32,
}

#[opkit::kind(group = "example.com", version = "v1", namespaced, cluster)]
pub struct FootSpec {
    pub size: i32,
}
