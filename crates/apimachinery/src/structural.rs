//! Pruning, defaulting and validation of objects by their schemas, as an API server does them.
//!
//! The rules and the messages are those of custom resources in Kubernetes. The functions also
//! accept built-in kinds, with two differences. The published defaults of built-in kinds (`""`,
//! `0`, `{}`) are not the real ones, so do not call [`apply_defaults`] for built-in kinds. Objects
//! of built-in kinds may have duplicates in lists and null fields that a custom resource may not
//! have, so [`validate()`] accepts both. A schema is that of a built-in kind if its `metadata` is a
//! reference; in a custom resource `metadata` is missing or a plain object.
//!
//! This module does not evaluate CEL rules (`x-kubernetes-validations`).

mod defaults;
mod field_error;
mod formats;
mod lists;
mod normalize;
mod prune;
mod validate;

pub use defaults::{apply_defaults, drop_nulls, fill_defaults};
pub use field_error::{FieldError, FieldErrorKind};
pub use formats::is_known_format;
pub use normalize::normalize;
pub use prune::{prune, unknown_fields, unknown_fields_of_part};
pub use validate::{validate, validate_default, validate_update};

#[cfg(test)]
mod tests;
