//! An attribute that opkit generates.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub struct Part {
    #[serde(rename = "type")]
    pub kind: String,
}
