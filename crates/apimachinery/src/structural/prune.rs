//! Dropping the fields a schema does not know.

use serde_json::Value;

use crate::schema::{AdditionalProperties, Typed};

/// Drops the fields that `schema` does not know and returns their paths, sorted, such as
/// `spec.foo` or `spec.list[0].bar`.
///
/// `x-kubernetes-preserve-unknown-fields` and `x-kubernetes-embedded-resource` are honoured.
/// `apiVersion`, `kind` and `metadata` of the root always stay; unknown fields inside
/// `metadata` go, as the API server drops them too.
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
        At {
            resource: true,
            preserve: false,
        },
    );
    pruner.dropped.sort();
    pruner.dropped
}

/// The paths that [`prune`] would drop: what `fieldValidation=Strict` refuses.
pub fn unknown_fields(object: &Value, schema: &Typed<'_>) -> Vec<String> {
    prune(&mut object.clone(), schema)
}

struct Pruner {
    path: String,
    dropped: Vec<String>,
}

/// What the place of a value says beyond its schema.
#[derive(Clone, Copy, Default)]
struct At {
    /// The value is a whole resource, so its type and metadata stay.
    resource: bool,
    /// The value is an item of a list whose unknown fields are preserved.
    preserve: bool,
}

impl Pruner {
    fn prune(&mut self, value: &mut Value, schema: Option<&Typed<'_>>, at: At) {
        let embedded = schema.is_some_and(|typed| typed.schema().embedded_resource);
        let at = At {
            resource: at.resource || embedded,
            preserve: at.preserve || schema.is_some_and(preserves),
        };
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| self.field(name, value, schema, at));
            }
            Value::Array(items) => {
                let item_schema = schema.and_then(Typed::items);
                if at.preserve && item_schema.is_none() {
                    return;
                }
                let at = At {
                    resource: false,
                    ..at
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.within(&format!("[{index}]"), |this| {
                        this.prune(item, item_schema.as_ref(), at);
                    });
                }
            }
            _ => {}
        }
    }

    /// Prunes inside one field and says whether the field itself stays.
    fn field(&mut self, name: &str, value: &mut Value, schema: Option<&Typed<'_>>, at: At) -> bool {
        let segment = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!(".{name}")
        };
        let Some(typed) = schema else {
            self.dropped.push(format!("{}{segment}", self.path));
            return false;
        };
        if at.resource && matches!(name, "apiVersion" | "kind" | "metadata") {
            let meta = typed.resource_field(name);
            self.within(&segment, |this| {
                this.prune(value, meta.as_ref(), At::default())
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
                this.prune(value, declared.as_ref(), At::default())
            });
            return true;
        }
        if !at.preserve {
            self.dropped.push(format!("{}{segment}", self.path));
        }
        at.preserve
    }

    fn within(&mut self, segment: &str, act: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(segment);
        act(self);
        self.path.truncate(length);
    }
}

/// A definition of a built-in kind without any fields (RawExtension, JSON) holds anything.
fn preserves(typed: &Typed<'_>) -> bool {
    let schema = typed.schema();
    let free_form = typed.is_referenced()
        && schema.properties.is_empty()
        && schema.additional_properties.is_none()
        && schema.items.is_none();
    schema.preserve_unknown_fields || free_form
}
