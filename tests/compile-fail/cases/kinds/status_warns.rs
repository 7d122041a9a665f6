//! A status without the standard fields: two warnings, which `#[allow(deprecated)]` turns off.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::status]
pub struct RobotStatus {
    pub ready: i32,
}

#[opkit::status]
#[allow(deprecated)]
pub struct QuietStatus {
    pub ready: i32,
}
