//! Correlation of the values of an object before and after an update.

use std::cell::OnceCell;
use std::rc::Rc;

use opkit_apimachinery::schema::{AdditionalProperties, ListType, Schema};
use serde_json::{Map as JsonMap, Value as Json};

/// A value and the value before the update.
pub(super) struct Correlation<'a> {
    new: &'a Json,
    old: &'a Json,
    schema: &'a Schema,
    is_equal: OnceCell<bool>,
}

impl<'a> Correlation<'a> {
    pub(super) fn new(new: &'a Json, old: &'a Json, schema: &'a Schema) -> Self {
        Self {
            new,
            old,
            schema,
            is_equal: OnceCell::new(),
        }
    }

    /// Reports whether the value did not change.
    fn is_unchanged(&self) -> bool {
        *self.is_equal.get_or_init(|| self.compare())
    }

    fn compare(&self) -> bool {
        match (self.new, self.old) {
            (Json::Array(new), Json::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if self.schema.list_type != Some(ListType::Map) {
                    return new == old;
                }
                (0..new.len())
                    .all(|index| self.index(index).is_some_and(|child| child.is_unchanged()))
            }
            (Json::Object(new), Json::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(|child| child.is_unchanged()))
            }
            (new, old) => new == old,
        }
    }

    fn key(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.get(name)?, self.old.get(name)?);
        let additional = match &self.schema.additional_properties {
            Some(AdditionalProperties::Schema(values)) => Some(values),
            _ => None,
        };
        let schema = self.schema.properties.get(name).or(additional)?;
        Some(Self::new(new, old, schema))
    }

    fn index(&self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = correlated_item(self.schema, self.old.as_array()?, new)?;
        Some(Self::new(new, old, self.schema.items.as_deref()?))
    }
}

/// Returns the old item with the same keys, in a list of type map.
pub(super) fn correlated_item<'a>(
    schema: &Schema,
    old: &'a [Json],
    new: &Json,
) -> Option<&'a Json> {
    let keys = &schema.list_map_keys;
    if schema.list_type != Some(ListType::Map) || keys.is_empty() {
        return None;
    }
    let new = new.as_object()?;
    let scalar = |item: &'_ JsonMap<String, Json>, key: &str| {
        item.get(key)
            .filter(|value| value.is_boolean() || value.is_number() || value.is_string())
            .cloned()
    };
    let wanted: Vec<Json> = keys
        .iter()
        .map(|key| scalar(new, key))
        .collect::<Option<_>>()?;
    old.iter().find(|item| {
        let Some(item) = item.as_object() else {
            return false;
        };
        keys.iter()
            .zip(&wanted)
            .all(|(key, wanted)| scalar(item, key).as_ref() == Some(wanted))
    })
}

/// Which value decides whether the errors of a rule are ignored in an update.
#[derive(Clone, Default)]
pub(super) struct Ratchet<'a> {
    current: Option<Rc<Correlation<'a>>>,
    parent: Option<Rc<Correlation<'a>>>,
}

impl<'a> Ratchet<'a> {
    pub(super) fn new(correlation: Correlation<'a>) -> Self {
        Self {
            current: Some(Rc::new(correlation)),
            parent: None,
        }
    }

    /// Reports whether the value did not change, so that errors are warnings.
    pub(super) fn is_unchanged(&self) -> bool {
        let deciding = self.current.as_ref().or(self.parent.as_ref());
        deciding.is_some_and(|correlation| correlation.is_unchanged())
    }

    pub(super) fn key(&self, name: &str) -> Self {
        let Some(current) = &self.current else {
            return self.clone();
        };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        Self {
            current: current.key(name).map(Rc::new),
            parent: Some(current.clone()),
        }
    }

    pub(super) fn index(&self, index: usize) -> Self {
        let Some(current) = &self.current else {
            return self.clone();
        };
        Self {
            current: current.index(index).map(Rc::new),
            parent: Some(current.clone()),
        }
    }

    /// Returns the ratchet of the rules in `allOf`, which depend on the parent only.
    pub(super) fn for_all_of(&self) -> Self {
        Self {
            current: None,
            parent: self.parent.clone(),
        }
    }
}
