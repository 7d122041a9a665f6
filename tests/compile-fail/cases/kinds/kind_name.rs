//! A struct whose name does not end with `Spec`, and a kind with the name of its spec.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
pub struct Robot {}

#[opkit::kind(group = "example.com", version = "v1", namespaced, kind = "Arm")]
pub struct Arm {}
