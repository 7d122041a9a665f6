//! Parser of the Common Expression Language.
//!
//! # Examples
//! ```
//! use opkit_syntax::cel::{Source, parse};
//!
//! let source = Source::new("self.replicas <= 10");
//! assert!(parse(&source).is_ok());
//!
//! let source = Source::new("self.replicas <=");
//! let issues = parse(&source).unwrap_err();
//! assert_eq!(issues.first().and_then(|issue| issue.offset), Some(16));
//! ```

mod ast;
mod lexer;
mod parser;
mod source;
pub mod stack;

pub use ast::{
    ACCUMULATOR, Comprehension, Element, Entry, Expr, ExprId, ExprKind, Literal, OLD_ACCUMULATOR,
    StructField,
};
pub use parser::{Parsed, RESERVED, parse};
pub use source::{Issue, Source};
