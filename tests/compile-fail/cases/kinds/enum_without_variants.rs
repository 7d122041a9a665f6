//! An enum without values.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub enum Region {}
