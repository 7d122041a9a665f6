//! Rules by which the schema merges the parts of an object.

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::schema::{AdditionalProperties, ListType, MapType, PatchStrategy, SchemaType, Typed};

/// A position in the schema of an object, which determines how a value at this position is merged.
#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    /// The schema of the value is known.
    Known {
        typed: Typed<'a>,
        /// Whether the value is a whole resource, so that its field `metadata` is an ObjectMeta.
        resource: bool,
        /// Whether this schema or an enclosing one preserves unknown fields.
        preserve: bool,
    },
    /// There is no schema: maps are merged field by field, lists are replaced.
    Deduced,
    /// There is no schema, and values are replaced as a whole, as for RawExtension.
    Whole,
}

/// Merge rule of a value at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The value is replaced as a whole: scalars, atomic maps and lists.
    Leaf,
    /// Maps are merged field by field.
    Map,
    /// Lists are merged item by item.
    List,
}

impl<'a> Node<'a> {
    /// Returns the position of a whole object.
    pub(super) fn root(typed: &Typed<'a>) -> Self {
        let preserve = typed.schema().preserve_unknown_fields;
        Self::Known {
            typed: typed.clone(),
            resource: true,
            preserve,
        }
    }

    /// Returns the merge rule of `value` at this position. For a null value, the rule follows from
    /// the type in the schema.
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

    /// Returns the key fields that identify the items of the list at this position. The result is
    /// empty for a set, and `None` for an atomic list. A schema without `x-kubernetes-list-type`
    /// declares the key by `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
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

    /// Returns the position of a field, or `None` if the schema does not declare the field.
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

    /// Reports whether the schema lists the field `name` in `properties`.
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

    /// Returns the position of the items of a list.
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

    /// Returns the path element of an item of an associative list, or an error if the item is not
    /// valid. A key field that is missing in the item gets the default of the schema, such as
    /// `protocol: TCP`.
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

    /// Returns the object that Kubernetes has at this position before any field is set. In Go, a
    /// struct that is not a pointer exists as soon as its parent does. The published schemas mark
    /// such a struct by the default `{}`.
    pub(super) fn skeleton(&self) -> Value {
        let Self::Known { typed, .. } = self else {
            return Value::Null;
        };
        let schema = typed.schema();
        let mut fields = Map::new();
        for (name, declared) in &schema.properties {
            let required = schema.required.contains(name) && typed.is_built_in();
            // Only a property that is a reference can exist. Others need not be resolved.
            if declared.reference.is_none() {
                // Go omits a required set that is empty.
                let is_set = declared.list_type == Some(ListType::Set);
                if required && !is_set {
                    fields.insert(name.clone(), Value::Null);
                }
                continue;
            }
            let Some(property) = typed.property(name) else {
                continue;
            };
            let exists = property.is_referenced()
                && property
                    .default()
                    .is_some_and(|default| *default == Value::Object(Map::new()))
                && !property.schema().properties.is_empty();
            // A required struct without a default is a pointer in Go, which does not exist before
            // it is set.
            let is_pointer = property.is_referenced()
                && property.default().is_none()
                && !property.schema().properties.is_empty();
            if exists {
                fields.insert(name.clone(), Self::known(property, false).skeleton());
            } else if required && !is_pointer {
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
        // Preservation of unknown fields does not extend from an enclosing schema into a
        // definition.
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
