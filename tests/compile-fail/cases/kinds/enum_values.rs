//! Values of an enum that are not valid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(enum("a", 1))]
    pub a: String,
    #[opkit(enum(1, 1))]
    pub b: i32,
    #[opkit(enum())]
    pub c: i32,
    #[opkit(enum(Region::Eu))]
    pub d: i32,
}
