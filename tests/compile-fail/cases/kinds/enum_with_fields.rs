//! An enum that is more than a choice of strings.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub enum Power {
    Mains,
    Battery(i32),
}
