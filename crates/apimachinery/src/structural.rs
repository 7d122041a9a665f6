//! Pruning, defaulting and validation of objects by their schemas, as an API server does them.
//!
//! The rules and the messages are those of custom resources in Kubernetes. Built-in kinds use the
//! same functions, with two differences. Their published defaults (`""`, `0`, `{}`) are not the
//! real ones, so do not call [`apply_defaults`] for them. Their lists may hold duplicates and their
//! fields nulls that a custom resource may not have, so [`validate()`] accepts both. A schema is
//! that of a built-in kind if its `metadata` is a reference; in a custom resource `metadata` is
//! missing or a plain object.
//!
//! CEL rules (`x-kubernetes-validations`) are not evaluated here.

mod defaults;
mod field_error;
mod formats;
mod lists;
mod normalize;
mod prune;
mod validate;

pub use defaults::{apply_defaults, fill_defaults};
pub use field_error::{FieldError, FieldErrorKind};
pub use normalize::normalize;
pub use prune::{prune, unknown_fields};
pub use validate::validate;

#[cfg(test)]
mod tests;
