//! Structs with unnamed fields that have no single schema.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub struct Pair(String, String);

#[opkit::schema]
#[opkit(max_length = 3)]
pub struct Size(i32);

#[opkit::schema]
pub struct Name(Option<String>);

#[opkit::schema]
pub struct Ratio(f64);
