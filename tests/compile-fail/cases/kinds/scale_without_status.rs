//! A scale subresource without a status.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(
    group = "example.com",
    version = "v1",
    namespaced,
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    )
)]
pub struct RobotSpec {
    pub replicas: i32,
}
