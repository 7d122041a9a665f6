//! Labels and annotations of a CRD that are not valid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, label("team", "a b"), annotation("a/b/c", "d"), label("team"))]
pub struct RobotSpec {}
