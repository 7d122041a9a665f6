//! Declarations of functions: the standard library of CEL, and the libraries that Kubernetes 1.36
//! turns on.
//!
//! The tables are texts, one overload per line, because there are about 300 overloads.

mod kubernetes;
mod standard;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::types::{Type, split_arguments};

/// An overload of a function.
#[derive(Debug, Clone)]
pub(crate) struct Overload {
    /// Id of the overload, on which the cost of a call depends.
    pub(crate) id: &'static str,
    /// Whether the function is called with a receiver, which is the first argument.
    pub(crate) is_member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// Names of the type parameters.
    pub(crate) params: Vec<&'static str>,
}

/// Functions by name.
pub(crate) type Functions = HashMap<&'static str, Vec<Overload>>;

/// All functions that are declared in every environment.
pub(crate) static FUNCTIONS: LazyLock<Functions> =
    LazyLock::new(|| parse(&[standard::TABLE, kubernetes::TABLE]));

/// Functions of the mutating admission policies only.
pub(crate) static JSON_PATCH: LazyLock<Functions> =
    LazyLock::new(|| parse(&[kubernetes::JSON_PATCH]));

fn parse(tables: &[&'static str]) -> Functions {
    let mut functions = Functions::new();
    for line in tables.iter().flat_map(|table| table.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let parsed = parse_line(line);
        debug_assert!(parsed.is_some(), "malformed declaration: {line}");
        if let Some((name, overload)) = parsed {
            functions.entry(name).or_default().push(overload);
        }
    }
    functions
}

/// Parses a line such as `charAt string_char_at_int string.(int) -> string`.
fn parse_line(line: &'static str) -> Option<(&'static str, Overload)> {
    let (name, rest) = line.split_once(' ')?;
    let (id, signature) = rest.split_once(' ')?;
    let (arguments, result) = signature.split_once("->")?;
    let (receiver, arguments) = match arguments.trim().split_once(".(") {
        Some((receiver, arguments)) => (Some(receiver), arguments),
        None => (None, arguments.trim().strip_prefix('(')?),
    };
    let arguments = arguments.strip_suffix(')')?;
    let args: Vec<Type> = receiver
        .into_iter()
        .chain(split_arguments(arguments))
        .map(Type::parse)
        .collect::<Option<_>>()?;
    let result = Type::parse(result)?;
    let params = ["A", "B", "K", "T", "V"];
    let is_used = |param: &&str| {
        let wanted = Type::param(param);
        args.iter().chain([&result]).any(|t| mentions(t, &wanted))
    };
    let overload = Overload {
        id,
        is_member: receiver.is_some(),
        params: params.into_iter().filter(is_used).collect(),
        args,
        result,
    };
    Some((name, overload))
}

fn mentions(found: &Type, wanted: &Type) -> bool {
    found == wanted || found.parameters().iter().any(|t| mentions(t, wanted))
}

/// Names of types that an expression can use as values, and the types.
pub(crate) fn type_value(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "list" => Type::list(Type::param("A")),
        "map" => Type::map(Type::param("A"), Type::param("B")),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Type(std::sync::Arc::new(Type::Dyn)),
        "uint" => Type::Uint,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "net.IP" => Type::opaque("net.IP"),
        "net.CIDR" => Type::opaque("net.CIDR"),
        "optional_type" => Type::optional(Type::Dyn),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
