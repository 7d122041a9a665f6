//! Label and field selectors with Kubernetes' grammar, matching rules and error messages.

mod field;
mod label;
mod lexer;
mod names;
mod parser;

pub use crate::error::SelectorError;
pub use field::{FieldRequirement, FieldSelector};
pub use label::{LabelRequirement, LabelSelector, Operator};
pub use names::{label_key_errors, label_value_errors};

#[cfg(test)]
mod tests;
