//! Verbs of a typed client that are not valid.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[derive(TypedClient)]
#[client(skip_verbs(delete, remove))]
pub struct RobotSpec {}

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[derive(TypedClient)]
#[client(verbs(get), skip_verbs(delete))]
pub struct ArmSpec {}
