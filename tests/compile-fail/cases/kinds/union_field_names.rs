//! A discriminator with the name of a field, and repeated names.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema(union = "battery")]
pub enum Power {
    Mains,
    Battery(i32),
}

#[opkit::schema]
pub enum Source {
    Git(i32),
    #[opkit(rename = "Git")]
    Other(i32),
}
