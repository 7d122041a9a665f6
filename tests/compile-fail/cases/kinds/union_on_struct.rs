//! `union` on a struct.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema(union = "type")]
pub struct Power {
    pub hours: i32,
}
