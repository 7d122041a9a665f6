//! A borrowed set of fields in the format of FieldsV1.

use serde_json::{Map, Value};

/// The `fieldsV1` of an entry of `managedFields`, borrowed: the fields that one manager owns.
///
/// Clients look up the fields that they own on every reconcile, so this type reads the JSON without
/// building a tree. [`FieldSet`](super::FieldSet) is the owned form, which has the operations of a
/// set.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::managedfields::FieldSetRef;
/// use serde_json::json;
///
/// let fields = json!({"f:spec": {"f:replicas": {}, "f:containers": {
///     "k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}},
/// }}});
/// let set = FieldSetRef::new(&fields).unwrap();
/// assert!(set.contains(".spec.replicas"));
/// assert!(set.contains(".spec.containers[web].image"));
/// assert!(!set.contains(".spec.paused"));
///
/// let containers = set.field("spec").and_then(|spec| spec.field("containers")).unwrap();
/// let names: Vec<_> = containers.item_keys().map(|key| key["name"].clone()).collect();
/// assert_eq!(names, ["web"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldSetRef<'a> {
    fields: &'a Map<String, Value>,
}

impl<'a> FieldSetRef<'a> {
    /// Returns the set that `fields_v1` describes, or `None` if `fields_v1` is not a JSON object.
    pub fn new(fields_v1: &'a Value) -> Option<Self> {
        fields_v1.as_object().map(|fields| Self { fields })
    }

    /// Reports whether the set has no fields. The empty set below a field means that the manager
    /// owns the field as a whole.
    pub fn is_empty(self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the set of the fields below the field `name`, or `None` if the set does not have the
    /// field.
    pub fn field(self, name: &str) -> Option<Self> {
        self.fields.get(&format!("f:{name}")).and_then(Self::new)
    }

    /// Returns the keys of the list items in the set, such as `{"name":"web"}`. Fields, and items
    /// without keys, are left out.
    pub fn item_keys(self) -> impl Iterator<Item = Map<String, Value>> + 'a {
        self.steps().filter_map(|(_, step, _)| match step {
            Step::Key(key) => Some(key),
            _ => None,
        })
    }

    /// Reports whether the set has the field at `path`, or a field below `path`, or a parent of
    /// `path` that is owned as a whole.
    ///
    /// In `path` an item of a list is written with the value of one of its keys:
    /// `.status.conditions[Ready].status`.
    pub fn contains(self, path: &str) -> bool {
        !self.is_empty() && self.contains_below(path)
    }

    fn contains_below(self, path: &str) -> bool {
        if path.is_empty() || self.is_empty() {
            return true;
        }
        if let Some(rest) = path.strip_prefix('[') {
            let (item, rest) = rest.split_once(']').unwrap_or((rest, ""));
            let is_item = |value: &Value| match value {
                Value::String(text) => text == item,
                Value::Number(number) => number.to_string() == item,
                _ => false,
            };
            return self.steps().any(|(_, step, below)| {
                let found = match step {
                    Step::Key(key) => key.values().any(is_item),
                    Step::Value(value) => is_item(&value),
                    _ => false,
                };
                found && below.is_some_and(|below| below.contains_below(rest))
            });
        }
        let path = path.strip_prefix('.').unwrap_or(path);
        // The names of labels and annotations have dots, so a name is not what is before a dot.
        self.fields.iter().any(|(step, below)| {
            let rest = (step.strip_prefix("f:")).and_then(|name| path.strip_prefix(name));
            let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            let below = Self::new(below);
            rest.zip(below)
                .is_some_and(|(rest, below)| below.contains_below(rest))
        })
    }

    /// Returns the names of the fields in the set, without the fields below these fields.
    pub(super) fn field_names(self) -> impl Iterator<Item = &'a str> {
        self.fields
            .keys()
            .filter_map(|step| step.strip_prefix("f:"))
    }

    /// Returns the top-level elements of the set: each key as written, such as `f:spec`, its
    /// decoded form, and the set of the fields below the element.
    pub(super) fn steps(self) -> impl Iterator<Item = (&'a str, Step<'a>, Option<Self>)> {
        let fields = self.fields.iter();
        fields.map(|(step, below)| (step.as_str(), Step::decode(step), Self::new(below)))
    }
}

/// One element of a path in FieldsV1, decoded.
pub(super) enum Step<'a> {
    /// A field of an object: `f:name`.
    Field(&'a str),
    /// A list item, identified by its key fields: `k:{"name":"a"}`.
    Key(Map<String, Value>),
    /// An item of a set, identified by its value: `v:"a"`.
    Value(Value),
    /// A list item, identified by its index: `i:0`.
    Index(usize),
    /// The mark `.`, by which the object or item that contains the other fields is owned as well.
    Itself,
    /// A key that is not valid in FieldsV1.
    Invalid,
}

impl<'a> Step<'a> {
    fn decode(step: &'a str) -> Self {
        let decoded = match step.split_once(':') {
            Some(("f", name)) => Some(Self::Field(name)),
            Some(("k", key)) => serde_json::from_str(key).ok().map(Self::Key),
            Some(("v", value)) => serde_json::from_str(value).ok().map(Self::Value),
            Some(("i", n)) => n.parse().ok().map(Self::Index),
            _ => (step == ".").then_some(Self::Itself),
        };
        decoded.unwrap_or(Self::Invalid)
    }
}

/// Reports whether a list item has the key fields and values of `key`.
pub(super) fn has_key(item: &Value, key: &Map<String, Value>) -> bool {
    key.iter()
        .all(|(name, value)| item.get(name) == Some(value))
}

#[cfg(test)]
mod tests;
