//! Arguments in the wrong place.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, min_length = 1)]
pub struct RobotSpec {
    #[opkit(shortname = "rb")]
    pub image: String,
    pub part: Part,
    #[opkit(items(default = 1))]
    pub sizes: Vec<i32>,
}

#[opkit::schema]
pub struct Part {
    #[opkit(printcolumn = "Name")]
    pub name: String,
}

#[opkit::schema]
#[opkit(min = 1)]
pub enum Region {
    Eu,
}
