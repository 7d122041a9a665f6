//! How the parts of an object merge: what a schema says about ownership, and nothing else.

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::schema::{AdditionalProperties, ListType, MapType, PatchStrategy, SchemaType, Typed};

/// A place in an object's schema.
#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    /// A schema is known.
    Known {
        typed: Typed<'a>,
        /// The place is a whole resource, so `metadata` is ObjectMeta.
        resource: bool,
        /// This or an enclosing schema preserves unknown fields.
        preserve: bool,
    },
    /// Nothing is known: maps merge field by field, lists are replaced.
    Deduced,
    /// Nothing is known and everything is replaced as a whole (RawExtension).
    Whole,
}

/// How a value at a place merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// As a whole: scalars, atomic maps and lists.
    Leaf,
    /// Field by field.
    Map,
    /// Item by item.
    List,
}

impl<'a> Node<'a> {
    /// The place of a whole object.
    pub(super) fn root(typed: &Typed<'a>) -> Self {
        let preserve = typed.schema().preserve_unknown_fields;
        Self::Known {
            typed: typed.clone(),
            resource: true,
            preserve,
        }
    }

    /// How `value` merges here. A null merges as what the schema wants.
    pub(super) fn shape(&self, value: &Value) -> Shape {
        let object = match value {
            Value::Object(_) => true,
            Value::Array(_) => false,
            Value::Null => match self {
                Self::Known { typed, .. } => match typed.schema().type_ {
                    Some(SchemaType::Object) | None => true,
                    Some(SchemaType::Array) => false,
                    Some(_) => return Shape::Leaf,
                },
                Self::Deduced => true,
                Self::Whole => return Shape::Leaf,
            },
            _ => return Shape::Leaf,
        };
        match self {
            Self::Whole => Shape::Leaf,
            Self::Deduced if object => Shape::Map,
            Self::Deduced => Shape::Leaf,
            Self::Known { typed, .. } if object => match typed.map_type() {
                Some(MapType::Atomic) => Shape::Leaf,
                Some(MapType::Granular) | None => Shape::Map,
            },
            Self::Known { .. } => match self.list_keys() {
                Some(_) => Shape::List,
                None => Shape::Leaf,
            },
        }
    }

    /// The keys that items of an associative list merge by, none of them in a set; nothing
    /// for an atomic list. Old schemas say it with their patch strategy.
    fn list_keys(&self) -> Option<Vec<String>> {
        let Self::Known { typed, .. } = self else {
            return None;
        };
        match typed.list_type() {
            Some(ListType::Atomic) => None,
            Some(ListType::Set) => Some(Vec::new()),
            Some(ListType::Map) => Some(typed.list_map_keys().to_vec()),
            None if typed.patch_strategy().contains(&PatchStrategy::Merge) => Some(
                typed
                    .patch_merge_key()
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
            ),
            None => None,
        }
    }

    /// The place of a field; nothing when the schema does not know it.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let Self::Known {
            typed,
            resource,
            preserve,
        } = self
        else {
            return Some(self.clone());
        };
        let child = if *resource {
            typed.resource_field(name)
        } else {
            typed.field(name)
        };
        if let Some(child) = child {
            return Some(Self::known(child, *preserve));
        }
        match typed.schema().additional_properties {
            Some(AdditionalProperties::Allowed(true)) => Some(Self::Deduced),
            Some(_) => None,
            None => {
                let free_form = *preserve || typed.schema().properties.is_empty();
                free_form.then_some(Self::Deduced)
            }
        }
    }

    /// Whether the schema names the field, rather than allowing it among others.
    pub(super) fn names(&self, name: &str) -> bool {
        let Self::Known {
            typed, resource, ..
        } = self
        else {
            return false;
        };
        let meta = *resource && matches!(name, "apiVersion" | "kind" | "metadata");
        meta || typed.schema().properties.contains_key(name)
    }

    /// The place of a list's items.
    pub(super) fn item(&self) -> Self {
        match self {
            Self::Known {
                typed, preserve, ..
            } => match typed.items() {
                Some(items) => Self::known(items, *preserve),
                None => Self::Whole,
            },
            Self::Deduced | Self::Whole => Self::Whole,
        }
    }

    /// How an item of an associative list is addressed, or what is wrong with it. A key that
    /// the item leaves out has the schema's default (`protocol: TCP`).
    pub(super) fn item_element(&self, item: &Value) -> Result<PathElement, String> {
        let keys = self.list_keys().unwrap_or_default();
        let problem = match item {
            scalar if keys.is_empty() && !scalar.is_object() && !scalar.is_array() => {
                if !scalar.is_null() {
                    return Ok(PathElement::value(scalar));
                }
                "associative list without keys has an element that's an explicit null"
            }
            Value::Object(_) if keys.is_empty() => {
                "associative list without keys has an element that's a map type"
            }
            _ if keys.is_empty() => "not supported: associative list with lists as elements",
            Value::Object(fields) => return self.key_element(&keys, fields),
            Value::Null => "associative list with keys may not have a null element",
            _ => "associative list with keys may not have non-map elements",
        };
        Err(problem.to_owned())
    }

    fn key_element(
        &self,
        keys: &[String],
        fields: &Map<String, Value>,
    ) -> Result<PathElement, String> {
        let items = self.item();
        let value_of = |key: &String| fields.get(key).cloned().or_else(|| items.default_of(key));
        let present: Vec<(String, Value)> = keys
            .iter()
            .filter_map(|key| Some((key.clone(), value_of(key)?)))
            .collect();
        if present.is_empty() {
            let keys = keys
                .iter()
                .map(|key| crate::golang::quote(key))
                .collect::<Vec<_>>();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and \
                 doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(PathElement::key(present))
    }

    /// What an object of this place has from the start in Kubernetes: in Go, structs that are
    /// no pointers exist as soon as what holds them does. The published documents show them by
    /// the default `{}`.
    pub(super) fn skeleton(&self) -> Value {
        let Self::Known { typed, .. } = self else {
            return Value::Null;
        };
        let schema = typed.schema();
        let mut fields = Map::new();
        for name in schema.properties.keys() {
            let Some(property) = typed.property(name) else {
                continue;
            };
            let exists = property.is_referenced()
                && property
                    .default()
                    .is_some_and(|default| *default == Value::Object(Map::new()))
                && !property.schema().properties.is_empty();
            let required = schema.required.contains(name) && typed.is_built_in();
            if exists {
                fields.insert(name.clone(), Self::known(property, false).skeleton());
            } else if required {
                fields.insert(name.clone(), Value::Null);
            }
        }
        Value::Object(fields)
    }

    fn default_of(&self, name: &str) -> Option<Value> {
        let Self::Known { typed, .. } = self else {
            return None;
        };
        typed.property(name)?.default().cloned()
    }

    fn known(typed: Typed<'a>, preserve: bool) -> Self {
        if typed.is_raw_extension() {
            return Node::Whole;
        }
        let schema = typed.schema();
        // A definition stands on its own: what encloses its use does not reach into it.
        let inherited = preserve && !typed.is_referenced();
        let preserve = inherited || schema.preserve_unknown_fields;
        let resource = schema.embedded_resource;
        Self::Known {
            typed,
            resource,
            preserve,
        }
    }
}
