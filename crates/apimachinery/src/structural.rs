//! What an API server does to an object because of its schema: prune, default, validate.
//!
//! The rules and the messages are those of custom resources in Kubernetes. Built-in kinds go
//! through the same functions, with two differences the caller should know: their published
//! defaults (`""`, `0`, `{}`) are not the real ones, so [`apply_defaults`] is not for them; and
//! their lists may hold duplicates and their fields nulls that a custom resource's may not, so
//! [`validate`] lets both pass. Whether a schema is that of a built-in kind is told by its
//! metadata: a reference there, nothing or a plain object in a custom resource's.
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
