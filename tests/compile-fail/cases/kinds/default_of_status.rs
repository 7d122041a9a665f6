//! A default in a status.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::status]
#[allow(deprecated)]
pub struct RobotStatus {
    #[opkit(default = 1)]
    pub size: i32,
}
