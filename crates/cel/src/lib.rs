//! The Common Expression Language (CEL) of Kubernetes 1.36.
//!
#![doc = include_str!("../README.md")]

mod checker;
mod cost;
mod crd;
mod declarations;
mod environment;
mod error;
mod eval;
mod library;
mod plan;
mod program;
#[cfg(test)]
mod tests;
mod types;
mod value;

pub use crd::{RuleOptions, RuleOutcome, Rules, check_rules, compile_rules, malformed_level};
pub use environment::Environment;
pub use error::{CompileError, EvaluationError};
pub use library::authz::{Authorizer, Check, CheckTarget, Decision, ResourceCheck};
pub use program::{Bindings, Budget, PER_CALL_LIMIT, Program, RUNTIME_COST_BUDGET};
pub use types::Type;
pub use value::{Object, ObjectLiteral, Value};
