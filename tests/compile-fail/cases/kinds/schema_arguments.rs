//! Arguments of a type that are written in `#[opkit::schema(...)]`.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema(title = "A tool")]
pub struct Tool {
    pub name: String,
}

#[opkit::schema(apply)]
pub enum Region {
    Eu,
}
