//! Whether a child is as an application left it, told from the child alone: what a process that has
//! just started goes by.
//!
//! Two things together say that an application would change nothing:
//! - Our entry in `managedFields` has the fields that are given, and no others. The server takes a
//!   field from its manager when anybody else changes or removes it, so what is still ours was not
//!   touched since it was applied; and what is not ours is not to be removed.
//! - The values read as given. This finds what the server does not attribute, such as the work of
//!   an admission webhook on somebody else's request, and content of a newer release of the
//!   operator. Among the values is the mark ([`crate::mark`]).
//!
//! A value that the server writes otherwise reads as given if both are one quantity, in a field
//! that holds one, or if an empty one was left out. Any other, such as an image that a webhook
//! renames, is applied once after a start; the server finds that it changes nothing, and from its
//! answer on memory knows.

use std::collections::HashSet;

use opkit_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

/// What no manager owns, because the server does not track it.
const NOT_OWNED: [&str; 2] = ["apiVersion", "kind"];
const METADATA_NOT_OWNED: [&str; 2] = ["name", "namespace"];

/// Whether `current` reads as `content` everywhere, and `fields`, in the form of `fieldsV1`, has
/// all of it and no more.
pub(crate) fn is_as_applied(content: &Value, fields: &Value, current: &Value) -> bool {
    let (Some(content), Some(fields)) = (content.as_object(), fields.as_object()) else {
        return false;
    };
    let without = |object: &Map<String, Value>, names: [&str; 2]| {
        let mut object = object.clone();
        object.retain(|name, _| !names.contains(&name.as_str()));
        object
    };
    let api_version = content.get("apiVersion").and_then(Value::as_str);
    let root = Place {
        is_custom: is_custom(api_version.unwrap_or_default()),
        above: None,
        name: "",
    };
    let mut content = without(content, NOT_OWNED);
    if let Some(meta) = content.get_mut("metadata") {
        let owned = meta
            .as_object()
            .map(|meta| without(meta, METADATA_NOT_OWNED));
        *meta = owned.unwrap_or_default().into();
    }
    fields_hold(&content, fields, Some(current), &root)
}

/// Whether objects of this `apiVersion` are stored as they are given; of Kubernetes' own kinds,
/// empty lists are left out.
fn is_custom(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Where in an object a value is, which says what the server may have made of it. The items of a
/// list are in its place.
struct Place<'a> {
    is_custom: bool,
    above: Option<&'a Self>,
    name: &'a str,
}

impl<'a> Place<'a> {
    fn field(&'a self, name: &'a str) -> Self {
        Place {
            is_custom: self.is_custom,
            above: Some(self),
            name,
        }
    }

    /// Whether the server leaves out empty lists here.
    fn omits(&self) -> bool {
        !self.is_custom
    }

    /// Whether the server reads a quantity here, and writes it its own way. Elsewhere text that
    /// could be one is text: the version `1.10` is not the version `1.1`. A place that is missing
    /// here costs one request after a start.
    fn holds_quantity(&self) -> bool {
        let above = self.above.map_or("", |above| above.name);
        let above_that = self.above.and_then(|above| above.above);
        let is_one = matches!(
            (above_that.map_or("", |above| above.name), above, self.name),
            ("resources", "limits" | "requests", _)
                | ("spec", "capacity" | "hard" | "overhead", _)
                | ("overhead", "podFixed", _)
                | (
                    "limits",
                    "default" | "defaultRequest" | "max" | "maxLimitRequestRatio" | "min",
                    _
                )
                | (_, "emptyDir", "sizeLimit")
                | (_, "resourceFieldRef", "divisor")
                | (_, "target", "averageValue" | "value")
        );
        is_one && !self.is_custom
    }
}

/// Whether `value` is owned through `fields` and reads as `current`.
fn holds(
    value: &Value,
    fields: Option<&Value>,
    current: Option<&Value>,
    place: &Place<'_>,
) -> bool {
    let Some(fields) = fields.and_then(Value::as_object) else {
        // Of a list that has keys the server tracks the items: of an empty one, nothing.
        let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        return is_empty(value) && current.map_or(place.omits(), is_empty);
    };
    match value {
        // Owned as one, such as a list without keys.
        _ if fields.is_empty() => reads_as(value, current, place),
        Value::Object(values) => fields_hold(values, fields, current, place),
        Value::Array(items) => items_hold(items, fields, current, place),
        // A value has nothing below it.
        _ => false,
    }
}

/// As [`holds`], for the fields of an object.
fn fields_hold(
    values: &Map<String, Value>,
    fields: &Map<String, Value>,
    current: Option<&Value>,
    place: &Place<'_>,
) -> bool {
    let names = fields.keys().filter_map(|step| step.strip_prefix("f:"));
    names.into_iter().all(|name| values.contains_key(name))
        && values.iter().all(|(name, value)| {
            let below = fields.get(&format!("f:{name}"));
            let current = current.and_then(|current| current.get(name));
            holds(value, below, current, &place.field(name))
        })
}

/// As [`holds`], for the items of a list that has keys, or is a set. Each item has an entry of its
/// own.
fn items_hold(
    items: &[Value],
    fields: &Map<String, Value>,
    current: Option<&Value>,
    place: &Place<'_>,
) -> bool {
    let Some(list) = current.and_then(Value::as_array) else {
        return items.is_empty();
    };
    let mut keyed: Vec<(Map<String, Value>, &Value)> = Vec::new();
    let mut plain: Vec<Value> = Vec::new();
    for (step, below) in fields {
        match step.split_once(':') {
            Some(("k", key)) => match serde_json::from_str(key) {
                Ok(key) => keyed.push((key, below)),
                Err(_) => return false,
            },
            Some(("v", item)) => plain.extend(serde_json::from_str::<Value>(item)),
            _ => {}
        }
    }
    let (objects, values): (Vec<_>, Vec<_>) =
        (items.iter().enumerate()).partition(|(_, item)| item.is_object());
    // The server completes keys, such as the protocol of a port. Items that have theirs come first,
    // so that they do not lose their entry to one that leaves it open.
    let names: HashSet<String> = keyed
        .iter()
        .flat_map(|(key, _)| key.keys())
        .cloned()
        .collect();
    let (whole, open): (Vec<_>, Vec<_>) = objects
        .into_iter()
        .partition(|(_, item)| names.iter().all(|name| item.get(name).is_some()));
    let mut order: Vec<(usize, usize)> = Vec::new();
    let objects_hold = whole.into_iter().chain(open).all(|(nth, item)| {
        let agrees = |(key, _): &(Map<String, Value>, &Value)| {
            key.iter().all(|(k, v)| item.get(k).is_none_or(|i| i == v))
        };
        let Some(n) = keyed.iter().position(agrees) else {
            return false;
        };
        let (key, below) = keyed.swap_remove(n);
        let found = list
            .iter()
            .position(|found| key.iter().all(|(k, v)| found.get(k) == Some(v)));
        order.extend(found.map(|found| (nth, found)));
        let found = found.and_then(|found| list.get(found));
        holds(item, Some(below), found, place)
    });
    // Init containers run in their order. Items of others may stand between.
    order.sort_unstable();
    objects_hold
        && order.is_sorted_by_key(|(_, found)| *found)
        && keyed.is_empty()
        && (plain.iter()).all(|value| values.iter().any(|(_, given)| *given == value))
        && values
            .into_iter()
            .all(|(_, value)| plain.contains(value) && list.contains(value))
}

/// Whether a value that was sent reads as `current`. Of an object, what the server added to it does
/// not count: who else may change it is told by who owns it.
fn reads_as(value: &Value, current: Option<&Value>, place: &Place<'_>) -> bool {
    let Some(current) = current.filter(|current| !current.is_null()) else {
        return is_empty(value);
    };
    match (value, current) {
        (Value::Object(values), Value::Object(found)) => values
            .iter()
            .all(|(name, value)| reads_as(value, found.get(name), &place.field(name))),
        (Value::Array(items), Value::Array(found)) => {
            items.len() == found.len()
                && items
                    .iter()
                    .zip(found)
                    .all(|(item, found)| reads_as(item, Some(found), place))
        }
        // Integers are equal or not; 1 is 1.0.
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::String(a), Value::String(b)) => {
            let quantity = |text| Quantity::parse(text);
            let is_one = || quantity(a).is_some() && quantity(a) == quantity(b);
            a == b || place.holds_quantity() && is_one()
        }
        (value, current) => value == current,
    }
}

/// Whether a server that leaves out empty values may leave out this one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

#[cfg(test)]
mod tests;
