//! `other` without data, and on two variants.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub enum Region {
    Eu,
    #[opkit(other)]
    Other,
}

#[opkit::schema]
pub enum Zone {
    A,
    #[opkit(other)]
    Other(String),
    #[opkit(other)]
    More(String),
}
