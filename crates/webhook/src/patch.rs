//! The JSON patch of a mutating webhook.
//!
//! A webhook decodes the object of a request as a Rust type, which may not know all fields of the
//! object, and changes it. The patch contains only the changes between the decoded object before
//! and after, so that fields that the Rust type does not know, and values that it writes in another
//! form, stay as the client sent them.
//!
//! This takes three steps. [`Documents::changed`] parses what differs, [`merge`] carries the
//! changes over into the object of the request, and [`diff`] writes the difference between both
//! objects as RFC 6902 operations, which can therefore always be applied.

mod changed;

use serde_json::{Map, Value, json};

use self::changed::Documents;

/// Fields that identify an item of a list, in the order in which they are tried. Kubernetes' own
/// kinds use these as keys of their map lists.
const ITEM_KEYS: [&str; 8] = [
    "name",
    "key",
    "type",
    "uid",
    "mountPath",
    "devicePath",
    "containerPort",
    "ip",
];

/// Returns the operations that change `raw`, the object of a request, as the decoded object has
/// changed from `before` to `after`.
///
/// # Errors
/// Returns an error if a document is not JSON.
pub(crate) fn patch(
    before: &[u8],
    after: &[u8],
    raw: &[u8],
) -> Result<Vec<Value>, serde_json::Error> {
    Documents::changed(before, after, raw).map(|documents| operations(&documents))
}

fn operations(documents: &Documents) -> Vec<Value> {
    let mut changed = documents.raw.clone();
    merge(&documents.before, &documents.after, &mut changed);
    let mut operations = Vec::new();
    diff(
        &mut String::new(),
        &documents.raw,
        &changed,
        &mut operations,
    );
    operations
}

/// Carries the changes from `before` to `after` over into `raw`.
fn merge(before: &Value, after: &Value, raw: &mut Value) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            if !raw.is_object() {
                *raw = Value::Object(Map::new());
            }
            if let Value::Object(raw) = raw {
                merge_fields(before, after, raw);
            }
        }
        (Value::Array(before), Value::Array(after)) => match raw {
            Value::Array(raw) if raw.len() == before.len() => merge_items(before, after, raw),
            _ => *raw = Value::Array(after.clone()),
        },
        _ => *raw = after.clone(),
    }
}

fn merge_fields(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    raw: &mut Map<String, Value>,
) {
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        raw.remove(name);
    }
    for (name, after) in after {
        let before = before.get(name);
        if before == Some(after) {
            continue;
        }
        match (before, raw.get_mut(name)) {
            (Some(before), Some(raw)) => merge(before, after, raw),
            // The Rust type left an empty object out, which may have fields that it does not know.
            (None, Some(raw)) if raw.is_object() && after.is_object() => {
                merge(&Value::Object(Map::new()), after, raw);
            }
            // The client left the field out, and the Rust type has a default for it. Only what has
            // changed from the default is written.
            (Some(before @ Value::Object(_)), None) if after.is_object() => {
                let mut added = Value::Null;
                merge(before, after, &mut added);
                raw.insert(name.clone(), added);
            }
            _ => {
                raw.insert(name.clone(), after.clone());
            }
        }
    }
}

/// Carries changes of a list over. Each item of `after` is matched with the item of `before` that
/// it was, whose position is also the position in `raw`.
fn merge_items(before: &[Value], after: &[Value], raw: &mut Vec<Value>) {
    let origins = origins(before, after);
    let items = after.iter().zip(origins).map(|(item, origin)| {
        let old = origin.and_then(|index| Some((before.get(index)?, raw.get(index)?)));
        match old {
            Some((old, raw)) => {
                let mut changed = raw.clone();
                merge(old, item, &mut changed);
                changed
            }
            None => item.clone(),
        }
    });
    *raw = items.collect();
}

/// Returns, for each item of `after`, the position of the same item in `before`. Equal items are
/// matched first, so that an item that was only moved is not matched with another item. Then items
/// with the same key are matched, and in lists of the same length items at the same position.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut is_taken = vec![false; before.len()];
    let mut origins = vec![None; after.len()];
    let is_same_length = before.len() == after.len();
    type Match<'a> = &'a dyn Fn(usize, &Value, usize, &Value) -> bool;
    let matches: [Match<'_>; 4] = [
        &|new, item, old, was| new == old && item == was,
        &|_, item, _, was| item == was,
        &|_, item, _, was| item_key(item).is_some_and(|key| item_key(was) == Some(key)),
        &|new, _, old, _| is_same_length && new == old,
    ];
    for is_match in matches {
        for (new, (item, origin)) in after.iter().zip(&mut origins).enumerate() {
            if origin.is_some() {
                continue;
            }
            let mut free = before.iter().zip(&mut is_taken).enumerate();
            let found =
                free.find(|(old, (was, is_taken))| !**is_taken && is_match(new, item, *old, was));
            if let Some((old, (_, is_taken))) = found {
                *is_taken = true;
                *origin = Some(old);
            }
        }
    }
    origins
}

/// Returns the field that identifies an item of a list, with its value.
fn item_key(item: &Value) -> Option<(&'static str, &Value)> {
    let fields = item.as_object()?;
    let mut keys = ITEM_KEYS.iter();
    keys.find_map(|key| Some((*key, fields.get(*key)?)))
}

/// Adds the operations that change `old` to `new`. `path` is the JSON pointer of both.
fn diff(path: &mut String, old: &Value, new: &Value, operations: &mut Vec<Value>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().filter(|name| !new.contains_key(*name)) {
                below(path, name, |path| {
                    operations.push(json!({"op": "remove", "path": path}));
                });
            }
            for (name, value) in new {
                below(path, name, |path| match old.get(name) {
                    Some(old) => diff(path, old, value, operations),
                    None => operations.push(json!({"op": "add", "path": path, "value": value})),
                });
            }
        }
        (Value::Array(old), Value::Array(new)) => diff_items(path, old, new, operations),
        _ => operations.push(json!({"op": "replace", "path": path, "value": new})),
    }
}

/// Adds the operations that change one list to another: items at the same distance from the equal
/// beginning are changed, and then the rest is removed or added.
fn diff_items(path: &mut String, old: &[Value], new: &[Value], operations: &mut Vec<Value>) {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (
        old.get(start..).unwrap_or(&[]),
        new.get(start..).unwrap_or(&[]),
    );
    let backwards = old.iter().rev().zip(new.iter().rev());
    let end = backwards.take_while(|(a, b)| a == b).count();
    let old = old.get(..old.len().saturating_sub(end)).unwrap_or(&[]);
    let new = new.get(..new.len().saturating_sub(end)).unwrap_or(&[]);
    for (index, (old, new)) in old.iter().zip(new).enumerate() {
        let index = start.saturating_add(index).to_string();
        below(path, &index, |path| diff(path, old, new, operations));
    }
    let both = old.len().min(new.len());
    let index = |offset: usize| start.saturating_add(offset).to_string();
    // From the end, so that the positions of the others stay.
    for offset in (both..old.len()).rev() {
        below(path, &index(offset), |path| {
            operations.push(json!({"op": "remove", "path": path}));
        });
    }
    for (offset, value) in new.iter().enumerate().skip(both) {
        below(path, &index(offset), |path| {
            operations.push(json!({"op": "add", "path": path, "value": value}));
        });
    }
}

/// Calls `with` with the path of the field or item `name` below `path`.
fn below(path: &mut String, name: &str, with: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    match name.contains(['~', '/']) {
        true => path.push_str(&name.replace('~', "~0").replace('/', "~1")),
        false => path.push_str(name),
    }
    with(path);
    path.truncate(length);
}

#[cfg(test)]
mod tests;
