//! Removes the fields that a schema does not declare.

use serde_json::Value;

use crate::schema::{AdditionalProperties, Typed};

/// Removes the fields that `schema` does not declare, and returns the sorted paths of these fields,
/// such as `spec.foo` or `spec.list[0].bar`.
///
/// `x-kubernetes-preserve-unknown-fields` and `x-kubernetes-embedded-resource` are honoured.
/// `apiVersion`, `kind` and `metadata` of the root are always kept; unknown fields inside
/// `metadata` are removed, as the API server does.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use opkit_apimachinery::structural::prune;
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
/// }))?;
/// let mut object = json!({"kind": "Robot", "spec": {"size": 1, "colour": "red"}});
/// let dropped = prune(&mut object, &Typed::new(&schema, &NoDefinitions));
/// assert_eq!(dropped, ["spec.colour"]);
/// assert_eq!(object, json!({"kind": "Robot", "spec": {"size": 1}}));
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn prune(object: &mut Value, schema: &Typed<'_>) -> Vec<String> {
    let mut pruner = Pruner {
        path: String::new(),
        dropped: Vec::new(),
    };
    pruner.prune(
        object,
        Some(schema),
        Position {
            resource: true,
            preserve: false,
        },
    );
    pruner.dropped.sort();
    pruner.dropped
}

/// Returns the paths of the fields that [`prune`] would remove. A request with
/// `fieldValidation=Strict` is rejected if there are any.
pub fn unknown_fields(object: &Value, schema: &Typed<'_>) -> Vec<String> {
    prune(&mut object.clone(), schema)
}

/// Returns the paths of the fields of a value that its schema does not declare. Unlike in
/// [`unknown_fields`], the value is a part of an object.
pub fn unknown_fields_of_part(value: &Value, schema: &Typed<'_>) -> Vec<String> {
    let mut pruner = Pruner {
        path: String::new(),
        dropped: Vec::new(),
    };
    pruner.prune(&mut value.clone(), Some(schema), Position::default());
    pruner.dropped.sort();
    pruner.dropped
}

struct Pruner {
    path: String,
    dropped: Vec<String>,
}

/// Rules for a value that follow from its position in the object rather than from its schema.
#[derive(Clone, Copy, Default)]
struct Position {
    /// Whether the value is a whole resource, whose `apiVersion`, `kind` and `metadata` are kept.
    resource: bool,
    /// Whether the value is an item of a list that preserves unknown fields.
    preserve: bool,
}

impl Pruner {
    fn prune(&mut self, value: &mut Value, schema: Option<&Typed<'_>>, position: Position) {
        let embedded = schema.is_some_and(|typed| typed.schema().embedded_resource);
        let position = Position {
            resource: position.resource || embedded,
            preserve: position.preserve || schema.is_some_and(preserves),
        };
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| self.field(name, value, schema, position));
            }
            Value::Array(items) => {
                let item_schema = schema.and_then(Typed::items);
                if position.preserve && item_schema.is_none() {
                    return;
                }
                let position = Position {
                    resource: false,
                    ..position
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.within(&format!("[{index}]"), |this| {
                        this.prune(item, item_schema.as_ref(), position);
                    });
                }
            }
            _ => {}
        }
    }

    /// Removes unknown fields inside one field, and returns whether the field itself is kept.
    fn field(
        &mut self,
        name: &str,
        value: &mut Value,
        schema: Option<&Typed<'_>>,
        position: Position,
    ) -> bool {
        let segment = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!(".{name}")
        };
        let Some(typed) = schema else {
            self.dropped.push(format!("{}{segment}", self.path));
            return false;
        };
        if position.resource && matches!(name, "apiVersion" | "kind" | "metadata") {
            let meta = typed.resource_field(name);
            self.within(&segment, |this| {
                this.prune(value, meta.as_ref(), Position::default())
            });
            return true;
        }
        let declared = typed.field(name);
        let allowed = matches!(
            typed.schema().additional_properties,
            Some(AdditionalProperties::Allowed(_))
        );
        if declared.is_some() || allowed {
            self.within(&segment, |this| {
                this.prune(value, declared.as_ref(), Position::default())
            });
            return true;
        }
        if !position.preserve {
            self.dropped.push(format!("{}{segment}", self.path));
        }
        position.preserve
    }

    fn within(&mut self, segment: &str, act: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(segment);
        act(self);
        self.path.truncate(length);
    }
}

/// Reports whether unknown fields are preserved in a value of this schema. A definition of a
/// built-in kind that declares no fields, such as RawExtension or JSON, accepts any value.
fn preserves(typed: &Typed<'_>) -> bool {
    let schema = typed.schema();
    let free_form = typed.is_referenced()
        && schema.properties.is_empty()
        && schema.additional_properties.is_none()
        && schema.items.is_none();
    schema.preserve_unknown_fields || free_form
}
