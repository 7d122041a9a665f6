//! The annotation with the values that the version of an object cannot express.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Fields;
use super::difference::{Difference, Step};

/// Annotation that contains the values that the version of an object cannot express, by the version
/// that can.
pub const ANNOTATION: &str = "opkit.dev/conversion";

/// Maximum size of all annotations of an object in Kubernetes: the bytes of keys and values.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Kept values of an object by version. The values of versions that this process does not know are
/// kept too.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(BTreeMap<String, Vec<Value>>);

impl Kept {
    /// Removes the annotation from an object. An annotation that is not valid has no values.
    pub(super) fn take(object: &mut Fields) -> Self {
        let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
            return Self::default();
        };
        let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
            return Self::default();
        };
        let text = annotations.remove(ANNOTATION);
        if text.is_some() && annotations.is_empty() {
            metadata.remove("annotations");
        }
        let text = text.as_ref().and_then(Value::as_str);
        let parsed = text.and_then(|text| serde_json::from_str(text).ok());
        Self(parsed.unwrap_or_default())
    }

    /// Removes and returns the values that were kept for a version.
    pub(super) fn take_version(&mut self, version: &str) -> Vec<Difference> {
        let values = self.0.remove(version).unwrap_or_default();
        values.iter().filter_map(decode).collect()
    }

    pub(super) fn remove(&mut self, version: &str) {
        self.0.remove(version);
    }

    /// Replaces the values for a version.
    pub(super) fn set(&mut self, version: &str, differences: Vec<Difference>) {
        match differences.is_empty() {
            true => self.0.remove(version),
            false => {
                let values = differences.into_iter().map(encode).collect();
                self.0.insert(version.to_owned(), values)
            }
        };
    }

    /// Removes the values that `other` does not have.
    pub(super) fn intersect(&mut self, other: &Self) {
        for (version, values) in &mut self.0 {
            let others = other.0.get(version);
            values.retain(|value| others.is_some_and(|others| others.contains(value)));
        }
        self.0.retain(|_, values| !values.is_empty());
    }

    /// Writes the annotation. Values that would exceed the limit for the annotations of an object
    /// are left out; returns their number.
    pub(super) fn store(self, object: &mut Fields) -> usize {
        if self.0.values().all(Vec::is_empty) {
            return 0;
        }
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        let Value::Object(metadata) = metadata else {
            return self.0.values().map(Vec::len).sum();
        };
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if annotations.is_null() {
            *annotations = json!({});
        }
        let Value::Object(annotations) = annotations else {
            return self.0.values().map(Vec::len).sum();
        };
        let (text, lost) = self.text(ANNOTATIONS_MAX.saturating_sub(size(annotations)));
        match text {
            Some(text) => {
                annotations.insert(ANNOTATION.to_owned(), Value::String(text));
            }
            None if annotations.is_empty() => {
                metadata.remove("annotations");
            }
            None => {}
        }
        lost
    }

    /// Returns the text of the annotation and the number of values that it does not contain. The
    /// annotation has at most `room` bytes with its name, and contains the smallest values. The
    /// text is `None` if not even one value fits.
    fn text(mut self, room: usize) -> (Option<String>, usize) {
        let room = room.saturating_sub(ANNOTATION.len());
        let whole = json!(self.0).to_string();
        if whole.len() <= room {
            return (Some(whole), 0);
        }
        let mut sizes: Vec<(usize, String)> = Vec::new();
        for (version, values) in &self.0 {
            let each = values.iter().map(|it| (it.to_string().len(), version));
            sizes.extend(each.map(|(size, version)| (size, version.clone())));
        }
        sizes.sort();
        let count = sizes.len();
        // The text of a version needs its name in quotes, a colon, two brackets and a comma.
        let (mut used, mut limits) = ("{}".len(), BTreeMap::<String, usize>::new());
        let mut kept = 0_usize;
        for (size, version) in sizes {
            let new = match limits.contains_key(&version) {
                true => 0,
                false => json!(version).to_string().len().saturating_add(4),
            };
            let next = used
                .saturating_add(size)
                .saturating_add(new)
                .saturating_add(1);
            if next > room {
                break;
            }
            used = next;
            kept = kept.saturating_add(1);
            let limit = limits.entry(version).or_default();
            *limit = limit.saturating_add(1);
        }
        // Of each version, the smallest values are kept, in their order.
        for (version, values) in &mut self.0 {
            keep_smallest(values, limits.get(version).copied().unwrap_or_default());
        }
        self.0.retain(|_, values| !values.is_empty());
        let text = (!self.0.is_empty()).then(|| json!(self.0).to_string());
        (text, count.saturating_sub(kept))
    }
}

fn keep_smallest(values: &mut Vec<Value>, count: usize) {
    let mut sizes: Vec<(usize, usize)> = values
        .iter()
        .enumerate()
        .map(|(at, value)| (value.to_string().len(), at))
        .collect();
    sizes.sort_unstable();
    let mut places: Vec<usize> = sizes.into_iter().take(count).map(|(_, at)| at).collect();
    places.sort_unstable();
    let mut at = 0_usize;
    values.retain(|_| {
        let is_kept = places.binary_search(&at).is_ok();
        at = at.saturating_add(1);
        is_kept
    });
}

/// Returns the size of annotations as Kubernetes counts it.
fn size(annotations: &Map<String, Value>) -> usize {
    let each = annotations.iter();
    each.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

fn encode(difference: Difference) -> Value {
    let path = difference.path.into_iter().map(|step| match step {
        Step::Field(name) => Value::String(name),
        Step::Item(keys) => Value::Object(keys),
    });
    let mut encoded = Map::from_iter([("path".to_owned(), Value::Array(path.collect()))]);
    encoded.extend(difference.value.map(|value| ("value".to_owned(), value)));
    let seen = difference.seen.map(Value::String);
    encoded.extend(seen.map(|seen| ("seen".to_owned(), seen)));
    Value::Object(encoded)
}

fn decode(encoded: &Value) -> Option<Difference> {
    let path = encoded
        .get("path")?
        .as_array()?
        .iter()
        .map(|step| match step {
            Value::String(name) => Some(Step::Field(name.clone())),
            Value::Object(keys) => Some(Step::Item(keys.clone())),
            _ => None,
        });
    let seen = match encoded.get("seen") {
        Some(seen) => Some(seen.as_str()?.to_owned()),
        None => None,
    };
    Some(Difference {
        path: path.collect::<Option<_>>()?,
        value: encoded.get("value").cloned(),
        seen,
    })
}

#[cfg(test)]
mod tests;
