//! Fields of the types that are declared with opkit's attributes, for checks at compile time.
//!
//! A macro sees only the tokens of its own struct. So generated code compares the fields of other
//! types in constants, whose evaluation fails if a field is missing.

use std::marker::PhantomData;

/// Field of a struct.
#[derive(Debug, Clone, Copy)]
pub struct FieldInfo {
    /// JSON name.
    pub name: &'static str,
    /// Whether every valid object has the field: the field is required or has a default.
    pub is_present: bool,
    /// Form of the field's value.
    pub shape: Shape,
}

/// Form of a value.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// String, number or bool.
    Scalar,
    /// List.
    List,
    /// Value of a type, with the fields of the type if they are known.
    Type(Option<&'static [FieldInfo]>),
    /// Map, or a value of a type that is not known.
    Unknown,
}

/// Struct that is declared with an attribute of opkit.
pub trait Fields {
    /// Fields of the struct.
    const FIELDS: &'static [FieldInfo];
}

/// Finds the fields of a type, whether or not the type implements [`Fields`].
///
/// `Probe::<T>::FIELDS` is the inherent constant if `T` implements [`Fields`], and otherwise that
/// of [`UnknownFields`].
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: Fields> Probe<T> {
    /// Fields of the type.
    pub const FIELDS: Option<&'static [FieldInfo]> = Some(T::FIELDS);
}

/// Fields of a type that does not implement [`Fields`].
pub trait UnknownFields {
    /// Always `None`.
    const FIELDS: Option<&'static [FieldInfo]> = None;
}

impl<T> UnknownFields for Probe<T> {}

/// Reports whether a field can be a key of a list: it is a scalar that is always set. Returns true
/// if the fields are not known.
pub const fn has_key(fields: Option<&[FieldInfo]>, name: &str) -> bool {
    let Some(fields) = fields else {
        return true;
    };
    match find(fields, name) {
        Some(field) => {
            field.is_present && !matches!(field.shape, Shape::List | Shape::Type(Some(_)))
        }
        None => false,
    }
}

/// Reports whether there is a field at a path. Returns true if the fields at a part of the path are
/// not known.
pub const fn has_path(fields: Option<&[FieldInfo]>, path: &[&str]) -> bool {
    let (mut fields, mut path) = (fields, path);
    while let [name, rest @ ..] = path {
        let Some(known) = fields else {
            return true;
        };
        let Some(field) = find(known, name) else {
            return false;
        };
        path = rest;
        fields = match field.shape {
            Shape::Type(below) => below,
            Shape::Scalar | Shape::List => Some(&[]),
            Shape::Unknown => None,
        };
    }
    true
}

/// Fails the compilation with `message` unless `holds` is true. Only generated constants call this
/// function, so that it never fails at run time.
#[track_caller]
pub const fn require(holds: bool, message: &str) {
    if !holds {
        panic!("{}", message);
    }
}

const fn find<'a>(fields: &'a [FieldInfo], name: &str) -> Option<&'a FieldInfo> {
    let mut fields = fields;
    while let [field, rest @ ..] = fields {
        if is_same(field.name.as_bytes(), name.as_bytes()) {
            return Some(field);
        }
        fields = rest;
    }
    None
}

/// Compares two names. `==` of strings cannot be used in constants.
const fn is_same(left: &[u8], right: &[u8]) -> bool {
    let (mut left, mut right) = (left, right);
    loop {
        match (left, right) {
            ([], []) => return true,
            ([a, more_left @ ..], [b, more_right @ ..]) if *a == *b => {
                (left, right) = (more_left, more_right);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
