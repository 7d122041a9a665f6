//! A status without what every status should have: two warnings, and none where they are allowed.
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
