//! Parts of a plan that are computed once.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Call, Node, Planned, implementation};
use crate::library::convert::CONVERSIONS;
use crate::library::{formats, regex};
use crate::value::{Fault, Items, Key, List, Map, Value};

/// Functions that cel-go implements by one function for all overloads. The others check the types
/// of their arguments before they are called.
const SINGLETONS: [&str; 18] = [
    "!_",
    "-_",
    "_%_",
    "_*_",
    "_+_",
    "_-_",
    "_/_",
    "_<=_",
    "_<_",
    "_>=_",
    "_>_",
    "@in",
    "@sortByAssociatedKeys",
    "dyn",
    "matches",
    "size",
    "sort",
    "type",
];

/// Plans a list literal. A list of constants is a constant.
pub(super) fn list(elements: Vec<(Node, bool)>) -> Node {
    let mut values = Vec::with_capacity(elements.len());
    for (node, is_optional) in &elements {
        match node {
            Node::Constant(value) if !is_optional => values.push(value.clone()),
            _ => return Node::List(elements.into()),
        }
    }
    Node::Constant(Value::list(values))
}

/// Plans a map literal. A map of constants is a constant.
pub(super) fn map(entries: Vec<(Node, Node, bool)>) -> Planned {
    let mut values = Vec::with_capacity(entries.len());
    for (key, value, is_optional) in &entries {
        match (key, value) {
            (Node::Constant(key), Node::Constant(value)) if !is_optional => {
                values.push((key.clone(), value.clone()));
            }
            _ => return Ok(Node::Map(entries.into())),
        }
    }
    match Map::new(values) {
        Ok(map) => Ok(Node::Constant(Value::Map(map))),
        Err(_) => Ok(Node::Map(entries.into())),
    }
}

/// Plans `x in list`. A list of constants becomes a set.
pub(super) fn membership(operands: Box<[Node; 2]>) -> Result<Node, Box<[Node; 2]>> {
    let [
        _,
        Node::Constant(Value::List(List {
            items: Items::Values(values),
            ..
        })),
    ] = &*operands
    else {
        return Err(operands);
    };
    if values.is_empty() {
        return Ok(Node::Constant(Value::Bool(false)));
    }
    let keys: Option<BTreeSet<Key>> = values
        .iter()
        .map(|value| match value {
            Value::Double(number) if number.is_nan() => None,
            value => Key::of(value).ok(),
        })
        .collect();
    match keys {
        Some(set) => {
            let [value, _] = *operands;
            Ok(Node::Member {
                value: Box::new(value),
                set: Arc::new(set),
            })
        }
        None => Err(operands),
    }
}

/// Plans a call. A conversion of a constant is a constant, and constant regular expressions are
/// compiled.
pub(super) fn call(
    function: &str,
    overload: &'static str,
    args: Vec<Node>,
    accumulator: Option<usize>,
) -> Planned {
    let implementation = match formats::constant(function) {
        Some(_) => Some(no_arguments as crate::library::Function),
        None => implementation(function, overload),
    };
    let special = function == "@not_strictly_false";
    let implementation = match implementation {
        Some(found) => found,
        None if special => no_arguments,
        None => return Err(format!("no such overload: {function}")),
    };
    if CONVERSIONS.contains(&function)
        && let [Node::Constant(value)] = args.as_slice()
    {
        return match implementation(std::slice::from_ref(value)) {
            Ok(value) => Ok(Node::Constant(value)),
            Err(Fault::Error(message)) => Err(message),
            Err(Fault::Budget) => Err("operation cancelled".to_owned()),
        };
    }
    let mut compiled = None;
    if matches!(function, "matches" | "find" | "findAll")
        && let Some(Node::Constant(Value::String(pattern))) = args.get(1)
    {
        compiled = Some(regex::compile(pattern)?);
    }
    let is_dispatched = overload.is_empty() && !SINGLETONS.contains(&function) && !special;
    Ok(Node::Call(Arc::new(Call {
        stops_early: args.len() > 2 || compiled.is_some() || function == "format" || is_dispatched,
        function: function.to_owned(),
        overload,
        implementation,
        args,
        regex: compiled,
        accumulator,
    })))
}

/// Stands for the implementation of functions that the evaluator handles itself.
fn no_arguments<'a>(_: &[Value<'a>]) -> crate::value::Outcome<'a> {
    Err(Fault::no_such_overload())
}
