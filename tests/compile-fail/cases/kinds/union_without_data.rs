//! A union whose variants have no data.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema(union = "type")]
pub enum Power {
    Mains,
    Battery,
}
