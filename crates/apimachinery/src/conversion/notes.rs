//! What the declaration of a version states about its fields, for checks of its conversions.

use serde_json::{Map, Value};

/// Declared conversions of the fields of a type.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    /// Fields of the version.
    pub fields: &'static [FieldNote],
    /// Paths of fields that only the hub has, with dots between JSON names.
    pub added: &'static [&'static str],
    /// Whether the type has values that the hub does not have, such as variants of an enum.
    pub has_removed_values: bool,
    /// Whether the hub has values that the type does not have.
    pub has_added_values: bool,
}

/// Declared conversion of one field.
#[derive(Clone, Copy, Debug)]
pub struct FieldNote {
    /// JSON name of the field in the version.
    pub name: &'static str,
    /// Paths of the fields of the hub that have the value, with dots between JSON names. Empty if
    /// the hub does not have the value.
    pub hub: &'static [&'static str],
    /// The declaration as the user wrote it, such as `split(host, port)`. Empty for a field that is
    /// carried over.
    pub declared: &'static str,
    /// Whether the conversions lose values, which the annotation keeps.
    pub is_lossy: bool,
    /// Source file of the field.
    pub file: &'static str,
    /// Line of the field.
    pub line: u32,
    /// Lists and maps around the values that have notes of their own.
    pub containers: &'static [Container],
    /// Returns the notes of the type of the field.
    pub nested: fn() -> Notes,
}

/// A list or map of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Array.
    List,
    /// Object with any keys.
    Map,
}

impl Notes {
    /// Notes of a type that is the same in all versions.
    pub const NONE: Self = Self {
        fields: &[],
        added: &[],
        has_removed_values: false,
        has_added_values: false,
    };

    /// Removes what the hub cannot express from a value of the version.
    pub fn remove_removed(&self, value: &mut Value) {
        if self.has_removed_values {
            *value = Value::Null;
            return;
        }
        let Value::Object(fields) = value else {
            return;
        };
        for note in self.fields {
            if note.hub.is_empty() || note.is_lossy {
                fields.remove(note.name);
                continue;
            }
            if let Some(field) = fields.get_mut(note.name) {
                let nested = (note.nested)();
                each(field, note.containers, &|value| {
                    nested.remove_removed(value)
                });
            }
        }
    }

    /// Removes what the version cannot express from a value of the hub.
    pub fn remove_added(&self, value: &mut Value) {
        if self.has_added_values {
            *value = Value::Null;
            return;
        }
        let Value::Object(fields) = value else {
            return;
        };
        for path in self.added {
            remove(fields, path);
        }
        for note in self.fields.iter().filter(|note| note.is_lossy) {
            note.hub.iter().for_each(|path| remove(fields, path));
        }
        for note in self.fields {
            if let [path] = note.hub
                && let Some(field) = find(value, path)
            {
                let nested = (note.nested)();
                each(field, note.containers, &|value| nested.remove_added(value));
            }
        }
    }

    /// Returns the note about the field of the version with this JSON name.
    pub fn of_field(&self, name: &str) -> Option<&'static FieldNote> {
        self.fields.iter().find(|note| note.name == name)
    }

    /// Returns the note whose value is in the field `path` of the hub, or above it.
    pub fn of_hub(&self, path: &str) -> Option<&'static FieldNote> {
        let is_at = |hub: &str| {
            let rest = path.strip_prefix(hub);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.fields
            .iter()
            .find(|note| note.hub.iter().any(|hub| is_at(hub)))
    }
}

/// Calls `change` for each value inside of the containers.
fn each(value: &mut Value, containers: &[Container], change: &dyn Fn(&mut Value)) {
    match (containers.split_first(), value) {
        (None, Value::Null) => {}
        (None, value) => change(value),
        (Some((Container::List, rest)), Value::Array(items)) => {
            items.iter_mut().for_each(|item| each(item, rest, change));
        }
        (Some((Container::Map, rest)), Value::Object(fields)) => {
            fields
                .values_mut()
                .for_each(|field| each(field, rest, change));
        }
        _ => {}
    }
}

fn find<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(value, |at, name| at.get_mut(name))
}

/// Removes the field at a path, and the objects around it that become empty.
fn remove(fields: &mut Map<String, Value>, path: &str) {
    let Some((first, rest)) = path.split_once('.') else {
        fields.remove(path);
        return;
    };
    if let Some(Value::Object(inner)) = fields.get_mut(first) {
        remove(inner, rest);
        if inner.is_empty() {
            fields.remove(first);
        }
    }
}
