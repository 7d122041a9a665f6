//! Compares two objects field by field.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::path::PathElement;
use super::super::set::FieldSet;
use super::super::topology::{Node, Shape};
use super::field_node;

/// The fields in which two objects differ.
#[derive(Debug, Default)]
pub(in super::super) struct Comparison {
    pub(in super::super) added: FieldSet,
    pub(in super::super) modified: FieldSet,
    pub(in super::super) removed: FieldSet,
}

impl Comparison {
    /// Returns the fields that are added or modified in the new object.
    pub(in super::super) fn changed(&self) -> FieldSet {
        self.modified.union(&self.added)
    }

    /// Returns the fields that are added or modified in the new object, and the removed fields.
    pub(in super::super) fn into_parts(mut self) -> (FieldSet, FieldSet) {
        self.modified.extend(self.added);
        (self.modified, self.removed)
    }
}

/// Compares two objects that have the same schema. `metadata.managedFields` is ignored.
pub(in super::super) fn compare(old: &Value, new: &Value, node: &Node<'_>) -> Comparison {
    let mut walk = Walk {
        path: Vec::new(),
        comparison: Comparison::default(),
    };
    walk.compare(Some(old), Some(new), node);
    walk.comparison
}

struct Walk {
    path: Vec<PathElement>,
    comparison: Comparison,
}

impl Walk {
    fn compare(&mut self, old: Option<&Value>, new: Option<&Value>, node: &Node<'_>) {
        let old_shape = old.map(|value| node.shape(value));
        let new_shape = new.map(|value| node.shape(value));
        let leaf = match (old_shape, new_shape) {
            (None, None) => return,
            (Some(shape), None) | (None, Some(shape)) => self.compare_as(shape, old, new, node),
            (Some(a), Some(b)) if a == b => self.compare_as(a, old, new, node),
            // The value changed its shape, such as from a scalar to a map: report the changes of
            // both shapes.
            (Some(a), Some(b)) => {
                self.compare_as(a, old, new, node);
                self.compare_as(b, old, new, node)
            }
        };
        if !leaf {
            if old.is_none() {
                self.comparison.added.insert(&self.path);
            } else if new.is_none() {
                self.comparison.removed.insert(&self.path);
            }
        }
    }

    /// Compares two values by the merge rule `shape`. Returns `true` if the values were compared as
    /// a whole, and `false` if they were compared field by field or item by item.
    fn compare_as(
        &mut self,
        shape: Shape,
        old: Option<&Value>,
        new: Option<&Value>,
        node: &Node<'_>,
    ) -> bool {
        match shape {
            Shape::Leaf => {
                self.compare_whole(old, new);
                true
            }
            Shape::Map => {
                let old_fields = old.and_then(Value::as_object).filter(|o| !o.is_empty());
                let new_fields = new.and_then(Value::as_object).filter(|o| !o.is_empty());
                if old_fields.is_none() && new_fields.is_none() {
                    self.compare_whole(old, new);
                    return true;
                }
                for (name, new) in new_fields.into_iter().flatten() {
                    let old = old_fields.and_then(|fields| fields.get(name));
                    self.compare_field(name, old, Some(new), node);
                }
                for (name, old) in old_fields.into_iter().flatten() {
                    if new_fields.is_none_or(|fields| !fields.contains_key(name)) {
                        self.compare_field(name, Some(old), None, node);
                    }
                }
                false
            }
            Shape::List => {
                let old_items = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let new_items = new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                if old_items.is_empty() && new_items.is_empty() {
                    self.compare_whole(old, new);
                    return true;
                }
                self.compare_items(old_items, new_items, node);
                false
            }
        }
    }

    fn compare_field(
        &mut self,
        name: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        node: &Node<'_>,
    ) {
        if name == "managedFields" && is_metadata(&self.path) {
            return;
        }
        self.path.push(PathElement::Field(name.to_owned()));
        self.compare(old, new, &field_node(node, name));
        self.path.pop();
    }

    fn compare_whole(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.comparison.added.insert(&self.path),
            (_, None) => self.comparison.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => {
                self.comparison.modified.insert(&self.path);
            }
            _ => {}
        }
    }

    fn compare_items(&mut self, old: &[Value], new: &[Value], node: &Node<'_>) {
        let mut elements: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(element) = node.item_element(item) {
                elements.entry(element).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(element) = node.item_element(item) {
                elements.entry(element).or_default().1.push(item);
            }
        }
        let item_node = node.item();
        for (element, (old, new)) in elements {
            self.path.push(element);
            match (old.as_slice(), new.as_slice()) {
                (old @ ([] | [_]), new @ ([] | [_])) => {
                    self.compare(old.first().copied(), new.first().copied(), &item_node);
                }
                // Duplicates are owned together, so they are compared together.
                ([_, _, ..], [_, _, ..]) => {
                    if old != new {
                        self.comparison.modified.insert(&self.path);
                    }
                }
                ([_, _, ..], new) => {
                    if let Some(new) = new.first() {
                        self.compare(None, Some(new), &item_node);
                    }
                    self.comparison.removed.insert(&self.path);
                }
                (old, [_, _, ..]) => {
                    if let Some(old) = old.first() {
                        self.compare(Some(old), None, &item_node);
                    }
                    self.comparison.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

/// Reports whether the path is that of an object's metadata.
fn is_metadata(path: &[PathElement]) -> bool {
    matches!(path, [PathElement::Field(name)] if name == "metadata")
}

/// Reports whether two values are equal. `1` and `1.0` are equal.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
