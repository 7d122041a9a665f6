//! The part of an object that consists of the fields of a set.

use serde_json::{Map, Value};

use super::set_ref::{FieldSetRef, Step, has_key};

/// The part of an object that consists of the fields of a set, borrowed from the object and the
/// set.
///
/// Two projections are equal, and have the same hash, if the sets have the same fields and these
/// fields have the same values. The order of fields and of list items with keys is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Projection<'a>(Part<'a>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part<'a> {
    /// The object does not have the field, or the field is null or an empty object. These cases are
    /// equal, because typed objects do not always keep the difference.
    Missing,
    /// The value of a field that is owned as a whole.
    Value(&'a Value),
    /// Whether the list contains an item that the set identifies by value, such as `v:"a"`.
    Item(bool),
    /// The parts below this part, each with its FieldsV1 key, such as `f:spec`, sorted by key.
    Parts(Vec<(&'a str, Self)>),
}

impl<'a> FieldSetRef<'a> {
    /// Returns the part of `object` that consists of the fields of the set.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::managedfields::FieldSetRef;
    /// use serde_json::json;
    ///
    /// let fields = json!({"f:spec": {"f:image": {}}});
    /// let set = FieldSetRef::new(&fields).unwrap();
    /// let one = json!({"spec": {"image": "a", "replicas": 1}});
    /// let scaled = json!({"spec": {"image": "a", "replicas": 2}});
    /// let changed = json!({"spec": {"image": "b", "replicas": 1}});
    /// assert_eq!(set.project(&one), set.project(&scaled));
    /// assert_ne!(set.project(&one), set.project(&changed));
    /// ```
    pub fn project(self, object: &'a Value) -> Projection<'a> {
        Projection(part(Some(self), Some(object)))
    }
}

fn part<'a>(fields: Option<FieldSetRef<'a>>, value: Option<&'a Value>) -> Part<'a> {
    let (Some(fields), Some(value)) = (fields, value) else {
        return Part::Missing;
    };
    if fields.is_empty() {
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        return if is_empty {
            Part::Missing
        } else {
            Part::Value(value)
        };
    }
    let item = |found: &dyn Fn(&Value) -> bool| {
        let mut items = value.as_array().into_iter().flatten();
        items.find(|item| found(item))
    };
    let below = fields.steps().map(|(name, step, below)| {
        let found = match step {
            Step::Field(name) => part(below, value.get(name)),
            Step::Key(key) => part(below, item(&|item| has_key(item, &key))),
            Step::Value(wanted) => Part::Item(item(&|item| *item == wanted).is_some()),
            Step::Index(n) => part(below, value.get(n)),
            Step::Itself | Step::Invalid => Part::Item(true),
        };
        (name, found)
    });
    let mut below: Vec<_> = below.collect();
    // A JSON object does not always have its fields in order: that depends on how it is built.
    below.sort_unstable_by_key(|(name, _)| *name);
    Part::Parts(below)
}

#[cfg(test)]
mod tests;
