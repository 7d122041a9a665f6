//! A deprecation warning of two lines.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, deprecated = "a\nb")]
pub struct RobotSpec {}
