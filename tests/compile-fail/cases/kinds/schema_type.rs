//! A type that JSON schema does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(type_ = "text")]
    pub a: opkit::serde_json::Value,
}
