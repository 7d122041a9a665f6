//! Conversion of the value of a field whose type may or may not be a [`Version`].
//!
//! A macro does not know whether a type implements a trait. Generated code therefore calls a method
//! that exists twice: a method of the struct itself if the type is a `Version`, else the method of
//! a trait. Rust prefers the first.

use std::marker::PhantomData;

use super::{Notes, Version};

/// Value of a field of a version.
#[derive(Debug)]
pub struct Carried<T>(pub T);

impl<T: Version> Carried<T> {
    /// Converts the value to the hub.
    pub fn to_hub(self) -> T::Hub {
        self.0.to_hub()
    }
}

/// Conversion of a value whose type is the same in the hub.
pub trait Unchanged {
    /// Type of the value.
    type Value;

    /// Returns the value.
    fn to_hub(self) -> Self::Value;
}

impl<T> Unchanged for Carried<T> {
    type Value = T;

    fn to_hub(self) -> T {
        self.0
    }
}

/// Type of a field of a version.
#[derive(Debug)]
pub struct Target<T>(PhantomData<T>);

impl<T> Target<T> {
    /// Creates a target.
    pub const NEW: Self = Self(PhantomData);
}

impl<T: Version> Target<T> {
    /// Converts a value of the hub.
    pub fn convert(&self, hub: T::Hub) -> T {
        T::from_hub(hub)
    }

    /// Returns the notes of the type.
    pub fn notes() -> Notes {
        T::notes()
    }
}

/// Conversion to a type that is the same in the hub.
pub trait UnchangedTarget {
    /// Type of the value.
    type Value;

    /// Returns the value.
    fn convert(&self, value: Self::Value) -> Self::Value;

    /// Returns the notes of the type.
    fn notes() -> Notes;
}

impl<T> UnchangedTarget for Target<T> {
    type Value = T;

    fn convert(&self, value: T) -> T {
        value
    }

    fn notes() -> Notes {
        Notes::NONE
    }
}

/// Field of the hub into which fields of a version have moved. The field may be an `Option`.
#[derive(Debug)]
pub struct Inside<T>(pub T);

impl<'a, T: Default> Inside<&'a mut Option<T>> {
    /// Returns the value inside of the `Option`, after creating it if necessary.
    pub fn inside_mut(self) -> &'a mut T {
        self.0.get_or_insert_with(T::default)
    }
}

impl<T: Default> Inside<Option<T>> {
    /// Returns the value inside of the `Option`, or the default.
    pub fn inside(self) -> T {
        self.0.unwrap_or_default()
    }
}

/// Field that is not an `Option`.
pub trait PlainMut {
    /// Reference to the value.
    type Value;

    /// Returns the value.
    fn inside_mut(self) -> Self::Value;
}

impl<'a, T> PlainMut for Inside<&'a mut T> {
    type Value = &'a mut T;

    fn inside_mut(self) -> &'a mut T {
        self.0
    }
}

/// Field that is not an `Option`.
pub trait Plain {
    /// Type of the value.
    type Value;

    /// Returns the value.
    fn inside(self) -> Self::Value;
}

impl<T> Plain for Inside<T> {
    type Value = T;

    fn inside(self) -> T {
        self.0
    }
}
