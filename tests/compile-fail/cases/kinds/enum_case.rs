//! A case that `rename_all` does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
#[opkit(rename_all = "Title Case")]
pub enum Region {
    Eu,
}
