//! Costs of calls at run time.

use super::Range;
use super::calls::is_comparison;
use super::kubernetes::{CHECK_COST, is_unit, selector_cost};
use super::range::{REGEX_FACTOR, STRING_FACTOR};
use crate::value::{Object, Value};

/// Returns the cost of a call. The result is `None` if the call failed.
pub(crate) fn call_cost(
    function: &str,
    overload: &str,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
) -> u64 {
    list_cost(overload, args, result)
        .or_else(|| kubernetes_cost(function, overload, args, result))
        .unwrap_or_else(|| standard_cost(overload, args))
}

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// Returns the size of a value. The size of an optional value is that of its value.
fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(inner)) => size(inner),
        value => value.size(),
    }
}

fn standard_cost(overload: &str, args: &[Value<'_>]) -> u64 {
    match (overload, args) {
        (
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format",
            [first, ..],
        ) => scaled(size(first), STRING_FACTOR),
        ("in_list", [_, list]) => size(list),
        (overload, [first, second]) if is_comparison(overload) => {
            scaled(size(first).min(size(second)), STRING_FACTOR)
        }
        ("add_string" | "add_bytes", [first, second]) => {
            scaled(size(first).saturating_add(size(second)), STRING_FACTOR)
        }
        ("matches_string", [text, pattern]) => regex_cost(size(text), size(pattern)),
        ("contains_string", [text, part]) => {
            let text = scaled(size(text), STRING_FACTOR);
            text.saturating_mul(scaled(size(part), STRING_FACTOR))
        }
        _ => 1,
    }
}

fn regex_cost(text: u64, pattern: u64) -> u64 {
    let text = scaled(text.saturating_add(1), STRING_FACTOR);
    text.saturating_mul(scaled(pattern, REGEX_FACTOR))
}

/// Costs of cel-go's list and set libraries.
fn list_cost(overload: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64> {
    let allocates = |factor: f64, size: u64| ((size as f64 * factor) as u64).saturating_add(11);
    let self_compare = |value: &Value<'_>| {
        let Value::List(list) = value else {
            return allocates(2.0, 1);
        };
        let is_text = matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
        let factor = if is_text { 2.0 + STRING_FACTOR } else { 2.0 };
        let count = list.len() as u64;
        allocates(factor, count.saturating_mul(count))
    };
    Some(match (overload, args) {
        ("list_slice" | "lists_range" | "list_reverse", _) => {
            allocates(1.0, result.map_or(1, Value::size))
        }
        ("list_flatten", [list]) => allocates(1.0, list.size()),
        ("list_flatten_int", [list, Value::Int(depth)]) => allocates(*depth as f64, list.size()),
        ("list_distinct", [list]) => self_compare(list),
        (overload, [list]) if overload.ends_with("_sort") => self_compare(list),
        (overload, [_, keys]) if overload.ends_with("_sortByAssociatedKeys") => self_compare(keys),
        ("list_sets_contains_list" | "list_sets_intersects_list", [first, second]) => {
            first.size().saturating_mul(second.size()).saturating_add(1)
        }
        ("list_sets_equivalent_list", [first, second]) => first
            .size()
            .saturating_mul(second.size())
            .saturating_mul(2)
            .saturating_add(1),
        _ => return None,
    })
}

fn kubernetes_cost(
    function: &str,
    overload: &str,
    args: &[Value<'_>],
    result: Option<&Value<'_>>,
) -> Option<u64> {
    if is_unit(function) {
        return Some(1);
    }
    Some(match (function, args) {
        ("check", _) => CHECK_COST,
        ("fieldSelector" | "labelSelector", [_, selector]) => {
            selector_cost(Range::fixed(selector.size())).max
        }
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", args) => {
            args.first().map_or(0, traversal_cost)
        }
        ("ip", _) if overload == "cidr_ip" => 1,
        (
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "ip"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver",
            [first, ..],
        ) => scaled(first.size(), STRING_FACTOR),
        ("replace" | "split" | "ip.isCanonical", [first, ..]) => {
            scaled(first.size(), 2.0 * STRING_FACTOR)
        }
        ("join", _) => scaled(result.map_or(1, Value::size), 2.0 * STRING_FACTOR),
        ("find" | "findAll", [text, pattern, ..]) => regex_cost(text.size(), pattern.size()),
        ("containsIP" | "containsCIDR", [cidr, other]) => {
            let size = cidr.size();
            let mut cost = scaled(size.saturating_mul(2), STRING_FACTOR);
            if function == "containsCIDR" {
                cost = cost.saturating_add(scaled(size, STRING_FACTOR) + 1);
            }
            if overload.ends_with("_string") {
                cost = cost.saturating_add(scaled(other.size(), STRING_FACTOR));
            }
            cost
        }
        ("validate", [Value::Object(Object::Format(format)), text]) => {
            regex_cost(text.size(), format.regex_size)
        }
        ("_==_", [Value::Object(_), _]) => 1,
        _ => return None,
    })
}

/// Returns the cost of reading all parts of a value.
fn traversal_cost(value: &Value<'_>) -> u64 {
    let text = |bytes: usize| (bytes as f64 * STRING_FACTOR) as u64;
    match value {
        Value::String(value) => text(value.len()),
        Value::Bytes(value) => text(value.len()),
        Value::List(list) => list
            .iter()
            .map(|item| item.map_or(1, |item| traversal_cost(&item)))
            .fold(0, u64::saturating_add),
        Value::Map(map) => map
            .keys()
            .iter()
            .map(|key| {
                let value = map.find(key).ok().flatten();
                traversal_cost(key).saturating_add(value.map_or(1, |value| traversal_cost(&value)))
            })
            .fold(0, u64::saturating_add),
        _ => 1,
    }
}
