//! Sets the defaults of a structural schema in an object.

use serde_json::Value;

use crate::schema::Typed;

/// Removes nulls from fields that are neither nullable nor have a default, and then sets the
/// defaults of a custom resource's schema.
///
/// A missing field gets its default, and so does a null field that is not nullable. Defaults inside
/// a default value apply too. A missing object is not created just because one of its fields has a
/// default.
///
/// Do not call this function for built-in kinds: the defaults in their OpenAPI documents are Go's
/// zero values.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use opkit_apimachinery::structural::apply_defaults;
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"spec": {
///         "type": "object",
///         "properties": {"size": {"type": "integer", "default": 1}},
///     }},
/// }))?;
/// let mut object = json!({"spec": {"size": null, "colour": "red"}});
/// apply_defaults(&mut object, &Typed::new(&schema, &NoDefinitions));
/// assert_eq!(object, json!({"spec": {"size": 1, "colour": "red"}}));
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn apply_defaults(object: &mut Value, schema: &Typed<'_>) {
    drop_nulls(object, schema);
    fill_defaults(object, schema);
}

/// Removes nulls from fields that are neither nullable nor have a default.
pub fn drop_nulls(object: &mut Value, schema: &Typed<'_>) {
    drop_null_fields(object, Some(schema));
}

/// Sets the defaults of a custom resource's schema but, unlike [`apply_defaults`], removes no
/// nulls.
///
/// Kubernetes sets defaults in this way after a server-side apply, and then rejects the remaining
/// nulls in the validation. For all other requests, use [`apply_defaults`].
pub fn fill_defaults(object: &mut Value, schema: &Typed<'_>) {
    default(object, schema);
}

fn drop_null_fields(value: &mut Value, schema: Option<&Typed<'_>>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let field = schema.and_then(|typed| typed.field(name));
            if value.is_null() {
                // A null in a field that the schema does not declare is kept.
                return field.is_none_or(|typed| typed.nullable() || typed.default().is_some());
            }
            drop_null_fields(value, field.as_ref());
            true
        }),
        Value::Array(items) => {
            let item_schema = schema.and_then(Typed::items);
            for item in items {
                drop_null_fields(item, item_schema.as_ref());
            }
        }
        _ => {}
    }
}

fn default(value: &mut Value, schema: &Typed<'_>) {
    match value {
        Value::Object(fields) => {
            for name in schema.schema().properties.keys() {
                let Some(typed) = schema.property(name) else {
                    continue;
                };
                let Some(default) = typed.default() else {
                    continue;
                };
                let needs_default = match fields.get(name) {
                    None => true,
                    Some(present) => present.is_null() && !typed.nullable(),
                };
                if needs_default {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(typed) = schema.property(name) {
                    default(value, &typed);
                } else if let Some(typed) = schema.additional() {
                    default_null(value, &typed);
                    default(value, &typed);
                }
            }
        }
        Value::Array(items) => {
            let Some(typed) = schema.items() else { return };
            for item in items {
                default_null(item, &typed);
                default(item, &typed);
            }
        }
        _ => {}
    }
}

fn default_null(value: &mut Value, schema: &Typed<'_>) {
    if value.is_null()
        && !schema.nullable()
        && let Some(default) = schema.default()
    {
        *value = default.clone();
    }
}
