//! A kind without group and version.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(namespaced, version = "v1")]
pub struct RobotSpec {}

#[opkit::kind(group = "example.com", namespaced)]
pub struct ArmSpec {}
