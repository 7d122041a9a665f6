//! Paths that are not JSONPath.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[opkit(printcolumn("A", path = ".spec.list[0"))]
#[opkit(printcolumn("B", path = ".spec.list[?(@.a = 1)]"))]
#[opkit(printcolumn("C", path = "spec.image"))]
pub struct RobotSpec {
    pub image: String,
}
