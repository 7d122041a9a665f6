//! Compares a value with what the server stores for the value, which may be written differently.

use serde_json::Value;

use super::super::{UNOWNED_FIELDS, UNOWNED_METADATA};
use crate::quantity::Quantity;

/// Path to a value in an object. The path decides in which form the server writes the value. List
/// items have the path of their list.
pub(super) struct Place<'a> {
    is_custom: bool,
    above: Option<&'a Self>,
    name: &'a str,
}

impl<'a> Place<'a> {
    /// Returns the path to a whole object of this `apiVersion`.
    pub(super) fn root(api_version: &str) -> Self {
        Self {
            is_custom: is_custom(api_version),
            above: None,
            name: "",
        }
    }

    /// Returns the path to the field `name` of the value at this path.
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Place {
            is_custom: self.is_custom,
            above: Some(self),
            name,
        }
    }

    /// Reports whether this is the path to the object's `metadata`.
    pub(super) fn is_metadata(&self) -> bool {
        self.name == "metadata" && self.above.is_some_and(|above| above.above.is_none())
    }

    /// Reports whether `name` is a field of the object at this path that no manager ever owns.
    pub(super) fn is_unowned(&self, name: &str) -> bool {
        match self.above {
            None => UNOWNED_FIELDS.contains(&name),
            Some(_) => self.is_metadata() && UNOWNED_METADATA.contains(&name),
        }
    }

    /// Reports whether the server leaves out an empty list at this path.
    pub(super) fn omits_empty(&self) -> bool {
        !self.is_custom
    }

    /// Reports whether the value at this path is a quantity, which the server writes in canonical
    /// form. At other paths, text that looks like a quantity is compared as text: the version
    /// `1.10` is not the version `1.1`. A quantity whose path is missing in this function costs one
    /// unnecessary apply request after the client has started.
    fn has_quantity(&self) -> bool {
        let above = self.above.map_or("", |above| above.name);
        let above_that = self.above.and_then(|above| above.above);
        let has_quantity = matches!(
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
        has_quantity && !self.is_custom
    }
}

/// Reports whether this is the `apiVersion` of a custom kind, whose objects the server stores as
/// they are sent. For built-in kinds the server leaves out empty lists.
fn is_custom(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Reports whether `live` is what the server stores for `value`. Fields that only `live` has are
/// ignored: the managed fields of the object show whether another client may have set these fields.
pub(super) fn is_equivalent(value: &Value, live: Option<&Value>, place: &Place<'_>) -> bool {
    let Some(live) = live.filter(|live| !live.is_null()) else {
        return is_zero(value);
    };
    match (value, live) {
        (Value::Object(values), Value::Object(found)) => values
            .iter()
            .all(|(name, value)| is_equivalent(value, found.get(name), &place.field(name))),
        (Value::Array(items), Value::Array(found)) => {
            items.len() == found.len()
                && items
                    .iter()
                    .zip(found)
                    .all(|(item, found)| is_equivalent(item, Some(found), place))
        }
        // Integers are compared exactly, as they may not fit into an f64; 1 equals 1.0.
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::String(a), Value::String(b)) => {
            let is_same_quantity = || {
                let quantity = Quantity::parse(a);
                quantity.is_some() && quantity == Quantity::parse(b)
            };
            a == b || place.has_quantity() && is_same_quantity()
        }
        (value, live) => value == live,
    }
}

/// Reports whether the value is empty, so that a server that leaves out empty values may leave out
/// this value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}
