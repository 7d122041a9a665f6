//! A column with a type and a format that API servers do not know.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct RobotSpec {
    #[opkit(printcolumn("Image", type_ = "text"))]
    pub image: String,
    #[opkit(printcolumn("Size", format = "int"))]
    pub size: i32,
}
