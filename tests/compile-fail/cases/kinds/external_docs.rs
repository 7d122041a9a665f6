//! `external_docs` without an address.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(external_docs(description = "More."))]
    pub a: String,
}
