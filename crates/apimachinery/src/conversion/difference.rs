//! Differences between two versions of the fields of an object, and how they are applied.

use std::fmt;

use serde_json::{Map, Value};

use super::Fields;
use super::hash::hash;
use crate::schema::{ListType, MapType, NoDefinitions, Schema, Typed};

/// A value that one object has and another does not have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// Path of the value.
    pub path: Vec<Step>,
    /// The value; `None` if the field is absent.
    pub value: Option<Value>,
    /// Hash of the value at the same path of the other object; `None` if the field is absent there.
    pub seen: Option<String>,
}

/// One step of the path to a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A field of an object.
    Field(String),
    /// An item of a list of the type `map`, by its keys.
    Item(Map<String, Value>),
}

/// Returns the differences that turn `from` into `to`. The schema is that of the whole object; its
/// lists of the type `map` are compared item by item if both have the same keys in the same order.
/// Other lists, and objects of the type `atomic`, are compared as a whole.
pub fn differences(from: &Fields, to: &Fields, schema: &Schema) -> Vec<Difference> {
    let mut found = Vec::new();
    let typed = Typed::new(schema, &NoDefinitions);
    compare_fields(from, to, Some(&typed), &mut Vec::new(), &mut found);
    found
}

/// Returns the differences as [`differences`] does, of only some of the fields.
pub(super) fn differences_in(
    names: &[&str],
    from: &Fields,
    to: &Fields,
    schema: &Schema,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let typed = Typed::new(schema, &NoDefinitions);
    for name in names {
        let (from, to) = (from.get(*name), to.get(*name));
        if from != to {
            let mut path = vec![Step::Field((*name).to_owned())];
            let schema = typed.field(name);
            compare(from, to, schema.as_ref(), &mut path, &mut found);
        }
    }
    found
}

fn compare_fields(
    from: &Fields,
    to: &Fields,
    schema: Option<&Typed<'_>>,
    path: &mut Vec<Step>,
    found: &mut Vec<Difference>,
) {
    let removed = from.keys().filter(|name| !to.contains_key(*name));
    for name in to.keys().chain(removed) {
        let (from, to) = (from.get(name), to.get(name));
        if from == to {
            continue;
        }
        let schema = schema.and_then(|schema| schema.field(name));
        path.push(Step::Field(name.clone()));
        compare(from, to, schema.as_ref(), path, found);
        path.pop();
    }
}

fn compare(
    from: Option<&Value>,
    to: Option<&Value>,
    schema: Option<&Typed<'_>>,
    path: &mut Vec<Step>,
    found: &mut Vec<Difference>,
) {
    match (from, to) {
        (from, to) if from == to => return,
        (Some(Value::Object(from)), Some(Value::Object(to))) if !is_atomic(schema) => {
            return compare_fields(from, to, schema, path, found);
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            if let Some(keys) = common_keys(from, to, schema) {
                let schema = schema.and_then(Typed::items);
                for ((from, to), keys) in from.iter().zip(to).zip(keys) {
                    path.push(Step::Item(keys));
                    compare(Some(from), Some(to), schema.as_ref(), path, found);
                    path.pop();
                }
                return;
            }
        }
        _ => {}
    }
    found.push(Difference {
        path: path.clone(),
        value: to.cloned(),
        seen: from.map(hash),
    });
}

/// Reports whether an object is replaced as a whole. An object with alternatives is such an object,
/// because the fields of two alternatives must not be mixed.
fn is_atomic(schema: Option<&Typed<'_>>) -> bool {
    schema.is_some_and(|schema| {
        let schema = schema.schema();
        schema.map_type == Some(MapType::Atomic) || !schema.one_of.is_empty()
    })
}

/// Returns the keys of the items of two lists, if the lists are of the type `map` and have the same
/// keys in the same order.
fn common_keys(from: &[Value], to: &[Value], schema: Option<&Typed<'_>>) -> Option<Vec<Fields>> {
    let schema = schema?.schema();
    if schema.list_type != Some(ListType::Map) || from.len() != to.len() {
        return None;
    }
    let keys = |items: &[Value]| -> Option<Vec<Fields>> {
        let keys = items
            .iter()
            .map(|item| keys_of(item, &schema.list_map_keys));
        let keys = keys.collect::<Option<Vec<_>>>()?;
        let is_unique = |(at, key): (usize, &Fields)| !keys.iter().take(at).any(|it| it == key);
        keys.iter().enumerate().all(is_unique).then_some(keys)
    };
    let (from, to) = (keys(from)?, keys(to)?);
    (from == to).then_some(to)
}

fn keys_of(item: &Value, names: &[String]) -> Option<Fields> {
    let item = item.as_object()?;
    let keys = names
        .iter()
        .filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    let keys: Fields = keys.collect();
    (!keys.is_empty()).then_some(keys)
}

impl Difference {
    /// Sets the value in `fields`, if the present value is the one that was seen. Returns whether
    /// the value was set.
    pub(super) fn apply(&self, fields: &mut Fields) -> bool {
        let Some((last, path)) = self.path.split_last() else {
            return false;
        };
        let Some((Step::Field(first), rest)) = path.split_first() else {
            // The path has only one step.
            return match last {
                Step::Field(name) => self.set_field(fields, name),
                Step::Item(_) => false,
            };
        };
        let mut at = fields.get_mut(first);
        for step in rest {
            at = at.and_then(|value| step.find(value));
        }
        match (at, last) {
            (Some(Value::Object(fields)), Step::Field(name)) => self.set_field(fields, name),
            (Some(list), Step::Item(_)) => match (last.find(list), &self.value) {
                (Some(item), Some(value)) if self.seen.as_ref() == Some(&hash(item)) => {
                    *item = value.clone();
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn set_field(&self, fields: &mut Fields, name: &str) -> bool {
        if fields.get(name).map(hash) != self.seen {
            return false;
        }
        match &self.value {
            Some(value) => fields.insert(name.to_owned(), value.clone()),
            None => fields.remove(name),
        };
        true
    }
}

impl Step {
    fn find<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match self {
            Self::Field(name) => value.as_object_mut()?.get_mut(name),
            Self::Item(keys) => value.as_array_mut()?.iter_mut().find(|item| {
                let has = |(name, key): (&String, &Value)| item.get(name) == Some(key);
                !keys.is_empty() && keys.iter().all(has)
            }),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Item(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, key)| format!("{name}={key}"))
                    .collect();
                write!(f, "[{}]", keys.join(","))
            }
        }
    }
}
