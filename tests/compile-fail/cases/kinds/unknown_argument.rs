//! Arguments with typing errors.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, shotrname = "rb")]
pub struct RobotSpec {
    #[opkit(max_lenght = 255)]
    pub image: String,
    #[opkit(something)]
    pub command: String,
}
