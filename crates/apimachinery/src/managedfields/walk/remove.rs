//! Removes fields from an object.

use serde_json::{Map, Value};

use super::super::path::PathElement;
use super::super::set::FieldSet;
use super::super::topology::{Node, Shape};
use super::field_node;

/// Returns the object without the fields of the set, or `None` if no field remains. A field that
/// loses all its children and is not in the set itself becomes null; validation decides whether
/// null is allowed.
pub(in super::super) fn remove_items(
    value: &Value,
    removed: &FieldSet,
    node: &Node<'_>,
) -> Option<Value> {
    match (node.shape(value), value) {
        (Shape::Map, Value::Object(fields)) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let element = PathElement::Field(name.clone());
                if removed.has(&element) {
                    continue;
                }
                let value = match removed.below(&element) {
                    Some(below) => remove_items(value, below, &field_node(node, name)),
                    None => Some(value.clone()),
                };
                kept.insert(name.clone(), value.unwrap_or(Value::Null));
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        (Shape::List, Value::Array(items)) => {
            let item_node = node.item();
            let mut kept = Vec::new();
            for item in items {
                let Ok(element) = node.item_element(item) else {
                    kept.push(item.clone());
                    continue;
                };
                if removed.has(&element) {
                    continue;
                }
                match removed.below(&element) {
                    Some(below) => kept.extend(remove_items(item, below, &item_node)),
                    None => kept.push(item.clone()),
                }
            }
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        // A path inside a value that merges as a whole removes the whole value, unless it is a
        // scalar.
        (_, Value::Object(_) | Value::Array(_)) => None,
        (_, scalar) => Some(scalar.clone()),
    }
}
