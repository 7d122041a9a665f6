//! An enum whose variants have fields.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub enum Power {
    Mains,
    Battery(i32),
}
