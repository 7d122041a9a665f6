//! Arguments of objects on scalars.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(embedded_resource)]
    pub a: String,
    #[opkit(preserve_unknown_fields)]
    pub b: i32,
    #[opkit(int_or_string)]
    pub c: String,
    #[opkit(items(min = 1))]
    pub d: Vec<String>,
}
