//! Arguments that a struct with one unnamed field cannot have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
#[opkit(default = "a")]
pub struct Name(String);
