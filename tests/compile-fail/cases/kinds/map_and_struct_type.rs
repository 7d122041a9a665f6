//! `struct_type` and `map_type` on other types, or with other values.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(struct_type = "atomic")]
    pub a: BTreeMap<String, String>,
    #[opkit(map_type = "atomic")]
    pub b: Vec<String>,
    #[opkit(map_type = "set")]
    pub c: BTreeMap<String, String>,
    #[opkit(struct_type = "map")]
    pub d: Tool,
}

#[opkit::schema]
pub struct Tool {
    pub size: i32,
    pub name: Option<String>,
}
