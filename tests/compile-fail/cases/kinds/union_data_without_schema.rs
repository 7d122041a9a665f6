//! Data of a union that has no schema.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema(union = "type")]
pub enum Power {
    Mains,
    Battery(std::time::Instant),
}
