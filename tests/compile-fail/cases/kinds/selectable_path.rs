//! Paths that field selectors cannot use.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, selectable = ".metadata.name", selectable = ".spec.list[0]", selectable = ".spec.color")]
pub struct RobotSpec {
    pub image: String,
}
