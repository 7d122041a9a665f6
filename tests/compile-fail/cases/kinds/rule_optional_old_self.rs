//! `optional_old_self` on a rule without `oldSelf`.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(rule("self > 0", optional_old_self))]
    pub replicas: i32,
}
