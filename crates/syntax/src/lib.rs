//! Syntax of the languages that a CustomResourceDefinition contains: expressions of
//! [CEL](cel), [regular expressions](regexp) of Go, and [JSONPath](jsonpath).
//!
//! The crate has no dependencies, so that opkit's macros can check these languages at compile time.
//! `opkit-cel` type-checks and evaluates the expressions that are parsed here.

pub mod cel;
pub mod jsonpath;
pub mod regexp;
