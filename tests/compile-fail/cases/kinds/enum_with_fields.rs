//! Variants with several fields.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub enum Power {
    Mains,
    Battery { hours: i32 },
    Solar(i32, i32),
}
