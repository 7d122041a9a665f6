//! Repeated arguments and names.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(
    group = "example.com",
    version = "v1",
    namespaced,
    group = "example.org"
)]
#[opkit(version = "v2", shortname = "a", shortname = "b")]
pub struct RobotSpec {
    #[opkit(min = 1, max = 2)]
    #[opkit(min = 2)]
    pub size: i32,
    pub type_: String,
    pub r#type: String,
}

#[opkit::schema]
pub enum Region {
    Eu,
    #[opkit(rename = "Eu")]
    Europe,
}
