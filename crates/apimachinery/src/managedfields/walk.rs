//! Functions that walk over an object and its schema: collect, merge, compare and remove fields.

mod check;
mod compare;
mod merge;
mod remove;

use std::collections::BTreeSet;

use serde_json::Value;

use super::path::PathElement;
use super::set::FieldSet;
use super::topology::{Node, Shape};
use crate::schema::Typed;

pub(super) use check::check;
pub(super) use compare::{Comparison, compare};
pub(super) use merge::merge;
pub(super) use remove::remove_items;

impl FieldSet {
    /// Returns the fields that an object sets, which an apply of the object would own.
    ///
    /// Members are scalars, atomic maps and lists, list items, and fields that the schema does not
    /// list by name; an empty or null field is a member as well.
    pub fn of(object: &Value, schema: &Typed<'_>) -> Self {
        let mut set = Self::default();
        collect(object, &Node::root(schema), &mut Vec::new(), &mut set);
        set
    }

    /// Returns the set, to which each field that has children in the set is added as a member if
    /// the schema lists the field in `properties`.
    pub(super) fn with_named_parents<'n>(&self, node: &Node<'n>) -> Self {
        let add = |node: &Node<'n>, element: &PathElement| match element {
            PathElement::Field(name) => node.names(name),
            _ => false,
        };
        let below = |node: &Node<'n>, element: &PathElement| step(node, element);
        self.with_parents(Some(node), &add, &below)
    }
}

/// Returns the position in the schema to which `element` leads from `node`, or `None` if there is
/// none.
fn step<'a>(node: &Node<'a>, element: &PathElement) -> Option<Node<'a>> {
    match element {
        PathElement::Field(name) => node.field(name),
        PathElement::Key(_) => Some(node.item()),
        PathElement::Value(_) | PathElement::Index(_) => None,
    }
}

/// Returns the position of the field `name`, which is [`Node::Deduced`] if the schema does not
/// declare the field.
fn field_node<'a>(node: &Node<'a>, name: &str) -> Node<'a> {
    node.field(name).unwrap_or(Node::Deduced)
}

fn collect(value: &Value, node: &Node<'_>, path: &mut Vec<PathElement>, set: &mut FieldSet) {
    match (node.shape(value), value) {
        (Shape::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                path.push(PathElement::Field(name.clone()));
                collect(value, &field_node(node, name), path, set);
                let empty = value.is_null() || value.as_object().is_some_and(|o| o.is_empty());
                if empty || !node.names(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Shape::List, Value::Array(items)) => collect_items(items, node, path, set),
        (Shape::Map | Shape::List, _) => {}
        (Shape::Leaf, _) => set.insert(path),
    }
}

fn collect_items(
    items: &[Value],
    node: &Node<'_>,
    path: &mut Vec<PathElement>,
    set: &mut FieldSet,
) {
    let elements: Vec<Option<PathElement>> = items
        .iter()
        .map(|item| node.item_element(item).ok())
        .collect();
    let mut seen = BTreeSet::new();
    let mut duplicates = BTreeSet::new();
    for element in elements.iter().flatten() {
        if !seen.insert(element) {
            duplicates.insert(element);
        }
    }
    let item_node = node.item();
    for (item, element) in items.iter().zip(&elements) {
        let Some(element) = element else { continue };
        path.push(element.clone());
        // Duplicated items can only be owned together, as a whole.
        if !duplicates.contains(element) {
            collect(item, &item_node, path, set);
        }
        set.insert(path);
        path.pop();
    }
}
