//! Strategic merge patch: a merge patch whose schema declares which lists are merged, and by which
//! key.
//!
//! The rules are those of the package `k8s.io/apimachinery/pkg/util/strategicpatch` on the server:
//! a null deletes the field and is not stored, and merged lists keep the order of both lists.

use serde_json::{Map, Value};

use super::PatchError;
use crate::golang;
use crate::schema::{PatchStrategy, Typed};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Applies a strategic merge patch, with the merge keys and patch strategies that `schema`
/// declares. Where the schema declares none, maps are merged as in a JSON merge patch and lists are
/// replaced.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::patch::strategic_merge;
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({"properties": {"containers": {
///     "type": "array",
///     "items": {"type": "object"},
///     "x-kubernetes-patch-strategy": "merge",
///     "x-kubernetes-patch-merge-key": "name",
/// }}}))?;
/// let mut object = json!({"containers": [{"name": "a", "image": "x"}, {"name": "b"}]});
/// let patch = json!({"containers": [{"name": "b", "$patch": "delete"}, {"name": "a", "tty": true}]});
/// strategic_merge(&mut object, &patch, &Typed::new(&schema, &NoDefinitions))?;
/// assert_eq!(object, json!({"containers": [{"name": "a", "image": "x", "tty": true}]}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`PatchError::Malformed`] for unknown or misplaced directives, and for list items without their
/// merge key. The object may then be partly changed.
pub fn strategic_merge(
    object: &mut Value,
    patch: &Value,
    schema: &Typed<'_>,
) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        let kind = super::json::json_kind(patch);
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )));
    };
    merge_value(object, patch, Some(schema))
}

fn merge_value(
    original: &mut Value,
    patch: &Map<String, Value>,
    schema: Option<&Typed<'_>>,
) -> Result<(), PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        *original = match directive.as_str() {
            Some("delete") => Value::Object(Map::new()),
            Some("replace") => {
                let mut replacement = patch.clone();
                replacement.remove(DIRECTIVE);
                Value::Object(replacement)
            }
            _ => return Err(bad_directive(directive, patch)),
        };
        return Ok(());
    }
    if !original.is_object() {
        *original = Value::Object(Map::new());
    }
    let Value::Object(fields) = original else {
        return Ok(());
    };
    retain_keys(fields, patch)?;
    let ordered = merge_ordered(fields, patch, schema)?;
    for (name, change) in patch {
        if name == RETAIN_KEYS || name.starts_with(SET_ORDER) || ordered.contains(&name.as_str()) {
            continue;
        }
        if let Some(name) = name.strip_prefix(DELETE_FROM_LIST) {
            delete_from_list(fields, name, change);
        } else {
            merge_field(fields, name, change, schema)?;
        }
    }
    Ok(())
}

fn merge_field(
    fields: &mut Map<String, Value>,
    name: &str,
    change: &Value,
    schema: Option<&Typed<'_>>,
) -> Result<(), PatchError> {
    let field_schema = schema.and_then(|schema| schema.resource_field(name));
    let strategies = field_schema.as_ref().map_or(&[][..], Typed::patch_strategy);
    match (fields.get_mut(name), change) {
        (_, Value::Null) => {
            fields.remove(name);
        }
        (Some(original @ Value::Object(_)), Value::Object(patch)) => {
            if strategies.contains(&PatchStrategy::Replace) {
                *original = change.clone();
            } else {
                merge_value(original, patch, field_schema.as_ref())?;
            }
        }
        (Some(Value::Array(original)), Value::Array(patch)) => {
            if strategies.contains(&PatchStrategy::Merge) {
                merge_list(original, patch, field_schema.as_ref())?;
            } else {
                original.clone_from(patch);
            }
        }
        _ => match without_directives(change) {
            Some(value) => {
                fields.insert(name.to_owned(), value);
            }
            None => {
                fields.remove(name);
            }
        },
    }
    Ok(())
}

fn retain_keys(
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let Some(keys) = keys.as_array() else {
        return Err(malformed("invalid patch format of retainKeys"));
    };
    let listed = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let unlisted = |(name, value): (&String, &Value)| {
        let directive = name == RETAIN_KEYS || name.starts_with('$');
        !directive && !value.is_null() && !listed(name)
    };
    if patch.iter().any(unlisted) {
        return Err(malformed("invalid patch format of retainKeys"));
    }
    fields.retain(|name, _| listed(name));
    Ok(())
}

fn delete_from_list(fields: &mut Map<String, Value>, name: &str, deleted: &Value) {
    if let (Some(Value::Array(list)), Value::Array(deleted)) = (fields.get_mut(name), deleted) {
        list.retain(|item| !deleted.contains(item));
    }
}

/// Merges the lists for which the patch has a `$setElementOrder` directive, and returns the names
/// of these lists.
fn merge_ordered<'p>(
    fields: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    schema: Option<&Typed<'_>>,
) -> Result<Vec<&'p str>, PatchError> {
    let mut names = Vec::new();
    for (directive, order) in patch {
        let Some(name) = directive.strip_prefix(SET_ORDER) else {
            continue;
        };
        let Value::Array(order) = order else {
            let received = golang::type_name(order);
            return Err(PatchError::Malformed(format!(
                "expected a []interface {{}}, but received a {received}"
            )));
        };
        let field_schema = schema.and_then(|schema| schema.resource_field(name));
        let key = field_schema.as_ref().and_then(Typed::patch_merge_key);
        if let Some(Value::Array(patched)) = patch.get(name) {
            check_order(patched, order, key)?;
        }
        let original = match fields.get(name) {
            Some(Value::Array(original)) => Some(original.clone()),
            _ => None,
        };
        let merged = match (&original, patch.get(name)) {
            (None, Some(Value::Array(patched))) => {
                patched.iter().filter_map(without_directives).collect()
            }
            (Some(original), Some(Value::Array(patched))) => {
                let mut merged = original.clone();
                merge_list(&mut merged, patched, field_schema.as_ref())?;
                merged
            }
            (Some(original), _) => original.clone(),
            (None, _) => continue,
        };
        names.push(name);
        if merged.is_empty() && original.is_none() {
            continue;
        }
        let sorted = in_order(merged, order, original.as_deref().unwrap_or_default(), key);
        fields.insert(name.to_owned(), Value::Array(sorted));
    }
    Ok(names)
}

fn merge_list(
    original: &mut Vec<Value>,
    patch: &[Value],
    schema: Option<&Typed<'_>>,
) -> Result<(), PatchError> {
    let before = original.clone();
    if !original.iter().chain(patch).any(Value::is_object) {
        for item in patch {
            if !original.contains(item) {
                original.push(item.clone());
            }
        }
        *original = in_order(std::mem::take(original), patch, &before, None);
        return Ok(());
    }
    let Some(key) = schema.and_then(Typed::patch_merge_key) else {
        return Err(malformed("cannot merge lists without merge key"));
    };
    let items = schema.and_then(Typed::items);
    let mut patch_items = Vec::new();
    let mut replace = false;
    for item in patch {
        let Some(fields) = item.as_object() else {
            let lists = Value::from(vec![Value::from(before), Value::from(patch.to_vec())]);
            return Err(PatchError::Malformed(format!(
                "list element types are not identical: {}",
                golang::plain(&lists)
            )));
        };
        match fields
            .get(DIRECTIVE)
            .map(|directive| (directive, directive.as_str()))
        {
            None => patch_items.push(item.clone()),
            Some((_, Some("delete"))) => {
                let value = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
                original.retain(|candidate| candidate.get(key) != Some(value));
            }
            Some((_, Some("replace"))) => replace = true,
            Some((_, Some("merge"))) => {
                return Err(malformed(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            Some((directive, _)) => return Err(bad_directive(directive, fields)),
        }
    }
    if replace {
        *original = patch_items;
        return Ok(());
    }
    for item in &patch_items {
        let Some(fields) = item.as_object() else {
            continue;
        };
        let value = fields.get(key).ok_or_else(|| no_merge_key(fields, key))?;
        match original
            .iter_mut()
            .find(|candidate| candidate.get(key) == Some(value))
        {
            Some(found) => merge_value(found, fields, items.as_ref())?,
            None => original.push(item.clone()),
        }
    }
    *original = in_order(std::mem::take(original), &patch_items, &before, Some(key));
    Ok(())
}

/// Sorts a merged list. The items in `order` have the order of `order`; the other items have the
/// order of `before`, the list before the merge. An item in `order` and another item keep their
/// relative order if both were in `before`.
fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| {
        list.iter().position(|candidate| match key {
            Some(key) => candidate.get(key).is_some() && candidate.get(key) == item.get(key),
            None => candidate == item,
        })
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(before, item));
    let mut sorted = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        let here = place(before, &item);
        // An item that the server did not have is placed before items that only the server has.
        let comes_first = |other: &Value| {
            here.zip(place(before, other))
                .is_some_and(|(here, other)| other < here)
        };
        while let Some(other) = others.next_if(comes_first) {
            sorted.push(other);
        }
        sorted.push(item);
    }
    sorted.extend(others);
    sorted
}

/// Returns an error if the items of a list in the patch have another order than in
/// `$setElementOrder`.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let identity = |item: &Value| match key {
        Some(key) => item.get(key).cloned(),
        None => Some(item.clone()),
    };
    let mut left = order.iter();
    let directs = |item: &&Value| item.get(DIRECTIVE).is_some();
    let fits = patch
        .iter()
        .filter(|item| !directs(item))
        .all(|item| order.is_empty() || left.any(|wanted| identity(wanted) == identity(item)));
    if fits {
        return Ok(());
    }
    let print = |list: &[Value]| golang::plain(&Value::Array(list.to_vec()));
    Err(PatchError::Malformed(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        print(patch),
        print(order)
    )))
}

/// Returns the value to store in a new field: `value` without nulls and directives. Returns `None`
/// if the value has a `$patch` directive.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| {
                let directs = *name == RETAIN_KEYS
                    || name.starts_with(SET_ORDER)
                    || name.starts_with(DELETE_FROM_LIST);
                !directs && !value.is_null()
            });
            let kept =
                kept.filter_map(|(name, value)| Some((name.clone(), without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        _ => Some(value.clone()),
    }
}

fn malformed(message: &str) -> PatchError {
    PatchError::Malformed(message.to_owned())
}

fn bad_directive(directive: &Value, fields: &Map<String, Value>) -> PatchError {
    let name = directive
        .as_str()
        .map_or_else(|| directive.to_string(), str::to_owned);
    let fields = golang::plain(&Value::Object(fields.clone()));
    PatchError::Malformed(format!("unknown patch type: {name} in map: {fields}"))
}

fn no_merge_key(fields: &Map<String, Value>, key: &str) -> PatchError {
    let fields = golang::plain(&Value::Object(fields.clone()));
    PatchError::Malformed(format!(
        "map: {fields} does not contain declared merge key: {key}"
    ))
}
