//! A declared type with generic parameters.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::schema]
pub struct Tool<T> {
    pub name: T,
}

#[opkit::schema]
pub enum Region<T> {
    Eu(T),
}
