//! Names that Kubernetes does not accept.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "Example", version = "1.0", namespaced, plural = "Robots", shortname = "R b")]
pub struct RobotSpec {}
