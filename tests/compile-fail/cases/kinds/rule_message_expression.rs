//! A message expression that is not valid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(rule("self > 0", message_expression = "'is ' +"))]
    pub replicas: i32,
}
