//! Functions of the standard library and of the libraries that Kubernetes turns on.

pub(crate) mod authz;
pub(crate) mod convert;
pub(crate) mod format_string;
pub(crate) mod formats;
pub(crate) mod lists;
pub(crate) mod net;
pub(crate) mod operators;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod sets;
pub(crate) mod strings;
pub(crate) mod time;
pub(crate) mod urls;

use crate::value::{Fault, Outcome, Value};

/// Implementation of a function. The receiver is the first argument.
pub(crate) type Function = for<'a> fn(&[Value<'a>]) -> Outcome<'a>;

/// Returns the implementation of a function.
pub(crate) fn find(name: &str) -> Option<Function> {
    operators::find(name)
        .or_else(|| convert::find(name))
        .or_else(|| time::find(name))
        .or_else(|| strings::find(name))
        .or_else(|| lists::find(name))
        .or_else(|| sets::find(name))
        .or_else(|| regex::find(name))
        .or_else(|| urls::find(name))
        .or_else(|| quantity::find(name))
        .or_else(|| net::find(name))
        .or_else(|| formats::find(name))
        .or_else(|| authz::find(name))
}

/// Returns the error of a call whose arguments match no overload.
pub(crate) fn no_overload(name: &str, args: &[Value<'_>]) -> Fault {
    let types: Vec<String> = args.iter().map(Value::type_name).collect();
    Fault::new(format!("no such overload: {name}({})", types.join(", ")))
}
