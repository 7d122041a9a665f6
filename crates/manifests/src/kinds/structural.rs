//! Schema of a whole object, in the form of Kubernetes' structural schemas.

use kube::core::schema::{OptionalEnum, StructuralSchemaRewriter};
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{AddNullable, Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use super::SchemaOf;
use super::schema::{Rule, add_rules};

/// Returns the schema of an object with this spec and status, and with these rules of the whole
/// object. The description of the schema is that of the spec.
pub(super) fn root(spec: SchemaOf, status: Option<SchemaOf>, rules: &[Rule]) -> Value {
    // As kube's derive does, but without its rule that makes optional quantities nullable.
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(KubernetesTypes)
        .into_generator();
    let mut properties = Map::new();
    let spec = spec(&mut generator).to_value();
    let description = spec.get("description").cloned();
    properties.insert("spec".to_owned(), spec);
    if let Some(status) = status {
        properties.insert("status".to_owned(), status(&mut generator).to_value());
    }
    let mut root = Schema::from(Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("required".to_owned(), json!(["spec"])),
        ("properties".to_owned(), Value::Object(properties)),
    ]));
    if let Some(description) = description {
        root.insert("description".to_owned(), description);
    }
    add_rules(root.ensure_object(), rules);
    for transform in generator.transforms_mut() {
        transform.transform(&mut root);
    }
    root.to_value()
}

/// Transform of schemars' types to the types of structural schemas. Kubernetes supports only the
/// integer formats int32 and int64, and requires an extension in a schema without a type.
#[derive(Debug, Clone)]
struct KubernetesTypes;

impl Transform for KubernetesTypes {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(schema) = schema.as_object_mut() else {
            return;
        };
        bound_integers(schema);
        // kube's transform removes the types of the alternatives.
        if schema.contains_key("x-kubernetes-int-or-string") && schema.contains_key("anyOf") {
            let types = json!([{"type": "integer"}, {"type": "string"}]);
            schema.insert("anyOf".to_owned(), types);
        }
        for name in ["items", "additionalProperties"] {
            schema.entry(name).and_modify(accept_anything);
        }
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.values_mut().for_each(accept_anything);
        }
    }
}

fn bound_integers(schema: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str);
    let (format, min, max) = match format {
        Some("int8") => ("int32", i64::from(i8::MIN), Some(i64::from(i8::MAX))),
        Some("int16") => ("int32", i64::from(i16::MIN), Some(i64::from(i16::MAX))),
        Some("uint8") => ("int32", 0, Some(i64::from(u8::MAX))),
        Some("uint16") => ("int32", 0, Some(i64::from(u16::MAX))),
        Some("uint32") => ("int64", 0, Some(i64::from(u32::MAX))),
        Some("uint64" | "uint") => ("int64", 0, None),
        Some("int") => {
            schema.insert("format".to_owned(), json!("int64"));
            return;
        }
        _ => return,
    };
    schema.insert("format".to_owned(), json!(format));
    // A user's limit is already tighter, or a mistake that the type corrects.
    let limit = |schema: &Map<String, Value>, name: &str| schema.get(name).and_then(Value::as_i64);
    let min = limit(schema, "minimum").map_or(min, |own| own.max(min));
    schema.insert("minimum".to_owned(), json!(min));
    if let Some(max) = max {
        let max = limit(schema, "maximum").map_or(max, |own| own.min(max));
        schema.insert("maximum".to_owned(), json!(max));
    }
}

/// Adds `x-kubernetes-preserve-unknown-fields` to a schema without a type, so that the schema
/// accepts any value.
fn accept_anything(schema: &mut Value) {
    if *schema == json!(true) {
        *schema = json!({});
    }
    const TYPES: [&str; 3] = [
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    ];
    if let Value::Object(schema) = schema
        && !TYPES.iter().any(|name| schema.contains_key(*name))
    {
        schema.insert(
            "x-kubernetes-preserve-unknown-fields".to_owned(),
            json!(true),
        );
    }
}
