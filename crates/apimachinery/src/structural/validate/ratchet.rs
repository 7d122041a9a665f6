//! Correlation of the values of an object before and after an update.

use serde_json::Value;

use crate::schema::{ListType, Typed};

/// Reports whether an update did not change a value. The order of the items does not matter in a
/// list of type map.
pub(super) fn is_unchanged(new: &Value, old: &Value, typed: &Typed<'_>) -> bool {
    match (new, old) {
        (Value::Array(items), Value::Array(before)) => {
            let Some(schema) = typed.items().filter(|_| is_map(typed)) else {
                return items == before;
            };
            let is_item_unchanged = |item: &Value| {
                old_item(typed, before, item).is_some_and(|old| is_unchanged(item, old, &schema))
            };
            items.len() == before.len() && items.iter().all(is_item_unchanged)
        }
        (Value::Object(fields), Value::Object(before)) => {
            fields.len() == before.len()
                && fields.iter().all(|(name, value)| {
                    let (old, schema) = (before.get(name), typed.field(name));
                    let pair = old.zip(schema);
                    pair.is_some_and(|(old, schema)| is_unchanged(value, old, &schema))
                })
        }
        (new, old) => new == old,
    }
}

/// Returns the item of the old list with the same keys as `item`. Only the items of a list of type
/// map can be found.
pub(super) fn old_item<'v>(typed: &Typed<'_>, old: &'v [Value], item: &Value) -> Option<&'v Value> {
    if !is_map(typed) {
        return None;
    }
    let scalar = |item: &'_ Value, key: &str| {
        let value = item.get(key)?;
        (value.is_string() || value.is_boolean() || value.is_number()).then(|| value.clone())
    };
    let keys = typed.list_map_keys();
    let wanted: Option<Vec<Value>> = keys.iter().map(|key| scalar(item, key)).collect();
    let wanted = wanted?;
    old.iter().find(|old| {
        let mut pairs = keys.iter().zip(&wanted);
        pairs.all(|(key, wanted)| scalar(old, key).as_ref() == Some(wanted))
    })
}

fn is_map(typed: &Typed<'_>) -> bool {
    typed.list_type() == Some(ListType::Map) && !typed.list_map_keys().is_empty()
}
