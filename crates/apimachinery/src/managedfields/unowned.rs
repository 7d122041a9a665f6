//! Merge of a configuration without owners, as a mutating admission policy does it.

use serde_json::Value;

use super::topology::{Node, Shape};
use super::{PathElement, walk};
use crate::schema::Typed;

/// Merges a configuration into an object by the list and map types of the schema, and records no
/// owner.
///
/// # Errors
/// If the configuration does not fit the schema.
///
/// # Examples
/// ```
/// use opkit_apimachinery::managedfields::merge;
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({"type": "object", "properties": {
///     "spec": {"type": "object", "properties": {
///         "size": {"type": "integer"}, "color": {"type": "string"},
///     }},
/// }}))?;
/// let typed = Typed::new(&schema, &NoDefinitions);
/// let merged = merge(&json!({"spec": {"size": 1}}), &json!({"spec": {"color": "red"}}), &typed)?;
/// assert_eq!(merged, json!({"spec": {"size": 1, "color": "red"}}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge(object: &Value, config: &Value, schema: &Typed<'_>) -> Result<Value, String> {
    let root = Node::root(schema);
    walk::check(config, &root).map_err(|wrong| wrong.to_string())?;
    let merged = walk::merge(Some(object), Some(config), &root);
    Ok(merged.unwrap_or(Value::Null))
}

/// Returns the paths of the maps and lists in a configuration that can only be replaced as a whole.
pub fn atomic_fields(config: &Value, schema: &Typed<'_>) -> Vec<String> {
    let mut found = Vec::new();
    find_atomics(config, &Node::root(schema), &mut Vec::new(), &mut found);
    found
}

fn find_atomics(
    value: &Value,
    node: &Node<'_>,
    path: &mut Vec<PathElement>,
    found: &mut Vec<String>,
) {
    if !value.is_object() && !value.is_array() {
        return;
    }
    if node.shape(value) == Shape::Leaf {
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        found.push(path.concat());
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(node) = node.field(name) {
                    path.push(PathElement::Field(name.clone()));
                    find_atomics(value, &node, path, found);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in (0..).zip(items) {
                path.push(PathElement::Index(index));
                find_atomics(item, &node.item(), path, found);
                path.pop();
            }
        }
        _ => {}
    }
}
