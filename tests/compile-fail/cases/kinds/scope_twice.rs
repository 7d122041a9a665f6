//! Two scopes.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, cluster)]
pub struct RobotSpec {}
