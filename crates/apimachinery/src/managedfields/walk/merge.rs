//! Merges an applied configuration into the live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::path::PathElement;
use super::super::topology::{Node, Shape};
use super::field_node;

/// Returns the live object merged with the configuration, or `None` if no field remains. Values of
/// the configuration take precedence. Items of associative lists keep the order of both lists.
pub(in super::super) fn merge(
    live: Option<&Value>,
    config: Option<&Value>,
    node: &Node<'_>,
) -> Option<Value> {
    let whole = || config.or(live).cloned();
    match node.shape(config.or(live)?) {
        Shape::Leaf => whole(),
        Shape::Map => {
            let live_fields = live.and_then(Value::as_object).filter(|o| !o.is_empty());
            let config_fields = config.and_then(Value::as_object).filter(|o| !o.is_empty());
            if live_fields.is_none() && config_fields.is_none() {
                return whole();
            }
            let merged = merge_fields(live_fields, config_fields, node);
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
        Shape::List => {
            let live_items = live
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            let config_items = config
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            if live_items.is_empty() && config_items.is_empty() {
                return whole();
            }
            let merged = merge_items(live_items, config_items, node);
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
    }
}

fn merge_fields(
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
    node: &Node<'_>,
) -> Map<String, Value> {
    let names: BTreeSet<&String> = live
        .into_iter()
        .chain(config)
        .flat_map(|fields| fields.keys())
        .collect();
    let mut merged = Map::new();
    for name in names {
        let live = live.and_then(|fields| fields.get(name));
        let config = config.and_then(|fields| fields.get(name));
        if let Some(value) = merge(live, config, &field_node(node, name)) {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

/// The items of one list, each with its path element.
struct MergeInput<'v> {
    items: Vec<(PathElement, &'v Value)>,
    /// The item of each path element; `None` if two items have the same path element.
    by_element: BTreeMap<PathElement, Option<&'v Value>>,
}

impl<'v> MergeInput<'v> {
    fn of(items: &'v [Value], node: &Node<'_>) -> Self {
        let mut side = Self {
            items: Vec::new(),
            by_element: BTreeMap::new(),
        };
        for item in items {
            let Ok(element) = node.item_element(item) else {
                continue;
            };
            let twice = side.by_element.contains_key(&element);
            side.by_element
                .insert(element.clone(), (!twice).then_some(item));
            side.items.push((element, item));
        }
        side
    }

    fn has(&self, element: &PathElement) -> bool {
        self.by_element.contains_key(element)
    }

    fn get(&self, element: &PathElement) -> Option<&'v Value> {
        self.by_element.get(element).copied().flatten()
    }
}

/// Merges two associative lists. Items of each list keep their relative order; where the two lists
/// disagree, the order of the configuration is used.
fn merge_items(live_items: &[Value], config_items: &[Value], node: &Node<'_>) -> Vec<Value> {
    let live = MergeInput::of(live_items, node);
    let config = MergeInput::of(config_items, node);
    let item_node = node.item();
    let mut shared = config
        .items
        .iter()
        .map(|(element, _)| element)
        .filter(|e| live.has(e));
    let mut next_shared = shared.next();
    let mut merged = Vec::new();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut live_rest = live.items.iter().peekable();
    let mut config_rest = config.items.iter().peekable();
    loop {
        let live_next = live_rest.peek().copied();
        let config_next = config_rest.peek().copied();
        if let (Some((live_element, _)), Some((config_element, config_item))) =
            (live_next, config_next)
        {
            if live_element == config_element {
                merged.extend(merge(live.get(live_element), Some(config_item), &item_node));
                done.insert(config_element);
                live_rest.next();
                config_rest.next();
                next_shared = shared.next();
                continue;
            }
            // A shared item that comes later in the configuration is added at that position.
            if config.has(live_element) && next_shared.is_some_and(|next| next != live_element) {
                live_rest.next();
                continue;
            }
        }
        if let Some((element, item)) = live_next {
            if !config.has(element) {
                merged.extend(merge(Some(item), None, &item_node));
                live_rest.next();
                continue;
            }
            if done.contains(element) {
                live_rest.next();
            }
        }
        if let Some((element, item)) = config_next {
            merged.extend(merge(live.get(element), Some(item), &item_node));
            done.insert(element);
            config_rest.next();
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        } else if live_next.is_none() {
            return merged;
        }
    }
}
