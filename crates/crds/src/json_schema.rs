//! JSON Schemas of the versions of a kind, for editors and kubeconform.

use serde_json::{Map, Value, json};

use crate::CrdError;
use crate::fields::{Version, flag};

/// Version of JSON Schema that editors and kubeconform know.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// A JSON Schema as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaFile {
    /// Path, such as `example.com/robot_v1.json`: the group, the kind in lower case and the
    /// version. kubeconform finds it with
    /// `-schema-location 'DIR/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json'`.
    pub path: String,
    /// Text of the file.
    pub text: String,
}

/// Returns a JSON Schema for each served version of each CRD. Unknown fields are not allowed, as
/// kubectl refuses them.
///
/// # Errors
/// If a document is not a CRD, or a version has no schema.
///
/// # Examples
/// ```
/// use serde_json::{Value, json};
///
/// let crd = json!({
///     "kind": "CustomResourceDefinition", "metadata": {"name": "robots.example.com"},
///     "spec": {
///         "group": "example.com", "names": {"kind": "Robot"},
///         "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {
///             "type": "object",
///             "properties": {"spec": {"type": "object", "nullable": true}},
///         }}}],
///     },
/// });
/// let files = opkit_crds::json_schemas(&[crd])?;
/// assert_eq!(files[0].path, "example.com/robot_v1.json");
/// let schema: Value = serde_json::from_str(&files[0].text).unwrap();
/// assert_eq!(schema["properties"]["spec"]["type"], json!(["object", "null"]));
/// # Ok::<(), opkit_crds::CrdError>(())
/// ```
pub fn json_schemas(crds: &[Value]) -> Result<Vec<SchemaFile>, CrdError> {
    let mut files = Vec::new();
    for crd in crds {
        let name = crate::name_of(crd)?;
        let part = |pointer: &str, field: &'static str| {
            let value = crd.pointer(pointer).and_then(Value::as_str);
            value.ok_or_else(|| CrdError::Incomplete {
                name: name.to_owned(),
                field,
            })
        };
        let group = part("/spec/group", "spec.group")?;
        let kind = part("/spec/names/kind", "spec.names.kind")?;
        let versions = Version::all(crd);
        for version in versions.iter().filter(|it| flag(it.document, "served")) {
            let schema = version.schema().ok_or_else(|| CrdError::Incomplete {
                name: name.to_owned(),
                field: "spec.versions[*].schema.openAPIV3Schema",
            })?;
            let path = format!("{group}/{}_{}.json", kind.to_lowercase(), version.name);
            let mut schema = root(schema, &format!("{group}/{}", version.name), kind);
            let comment = format!("Generated from the CRD {name}.");
            schema.insert("$comment".to_owned(), json!(comment));
            let schema = Value::Object(schema);
            let text = format!("{schema:#}\n");
            files.push(SchemaFile { path, text });
        }
    }
    Ok(files)
}

/// Returns the schema of a whole object.
fn root(schema: &Value, api_version: &str, kind: &str) -> Map<String, Value> {
    let mut schema = match convert(schema) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.insert("$schema".to_owned(), json!(DRAFT));
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for (name, value) in [("apiVersion", api_version), ("kind", kind)] {
            let property = properties
                .entry(name)
                .or_insert_with(|| json!({"type": "string"}));
            if let Some(property) = property.as_object_mut() {
                property.insert("enum".to_owned(), json!([value]));
            }
        }
        // Its schema in a CRD says nothing about the fields that every object has.
        properties.insert("metadata".to_owned(), json!({"type": "object"}));
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|it| it == name) {
                required.insert(0, json!(name));
            }
        }
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// Converts a schema of OpenAPI 3.0 with Kubernetes' extensions.
fn convert(schema: &Value) -> Value {
    let Some(keywords) = schema.as_object() else {
        // `additionalProperties: true`.
        return schema.clone();
    };
    let mut converted = Map::new();
    for (keyword, value) in keywords {
        let value = match keyword.as_str() {
            "properties" => match value.as_object() {
                Some(properties) => properties
                    .iter()
                    .map(|(name, property)| (name.clone(), convert(property)))
                    .collect::<Map<_, _>>()
                    .into(),
                None => continue,
            },
            "items" | "additionalProperties" | "not" => convert(value),
            "allOf" | "anyOf" | "oneOf" => match value.as_array() {
                Some(schemas) => schemas.iter().map(convert_part).collect(),
                None => continue,
            },
            "example" => {
                converted.insert("examples".to_owned(), json!([value]));
                continue;
            }
            "nullable" | "exclusiveMinimum" | "exclusiveMaximum" | "externalDocs" => continue,
            keyword if keyword.starts_with("x-kubernetes-") => continue,
            _ => value.clone(),
        };
        converted.insert(keyword.clone(), value);
    }
    for (keyword, limit) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        // In OpenAPI 3.0 this is a switch, in JSON Schema the limit itself.
        if flag(schema, keyword)
            && let Some(value) = converted.remove(limit)
        {
            converted.insert(keyword.to_owned(), value);
        }
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        converted.remove("anyOf");
        converted.insert("type".to_owned(), json!(["integer", "string"]));
    }
    if flag(schema, "nullable") {
        allow_null(&mut converted);
    }
    let is_open = flag(schema, "x-kubernetes-preserve-unknown-fields")
        || flag(schema, "x-kubernetes-embedded-resource");
    if converted.contains_key("properties")
        && !converted.contains_key("additionalProperties")
        && !is_open
    {
        converted.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(converted)
}

/// Converts a schema of `allOf` and the like, which limits the same value and has only some of its
/// fields.
fn convert_part(schema: &Value) -> Value {
    let mut converted = convert(schema);
    if let Some(keywords) = converted.as_object_mut()
        && schema.get("additionalProperties").is_none()
    {
        keywords.remove("additionalProperties");
    }
    converted
}

fn allow_null(schema: &mut Map<String, Value>) {
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(type_) => *type_ = json!([type_.clone(), "null"]),
        None => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value) {
        assert_eq!(convert(&schema), expected, "{schema}");
    }

    #[test]
    fn keywords_of_kubernetes_become_those_of_json_schema() {
        check(
            json!({"type": "string", "nullable": true, "enum": ["A"], "example": "A"}),
            json!({"type": ["string", "null"], "enum": ["A", null], "examples": ["A"]}),
        );
        check(
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!({"type": ["integer", "string"]}),
        );
        check(
            json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
            json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}),
        );
        check(
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!({"type": "array", "items": {"type": "string"}}),
        );
    }

    #[test]
    fn unknown_fields_are_refused_where_a_server_prunes_them() {
        let properties = json!({"a": {"type": "string"}});
        check(
            json!({"type": "object", "properties": properties}),
            json!({"type": "object", "properties": properties, "additionalProperties": false}),
        );
        for open in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            check(
                json!({"type": "object", "properties": properties, open: true}),
                json!({"type": "object", "properties": properties}),
            );
        }
        check(
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        );
        check(
            json!({"oneOf": [{"required": ["a"], "properties": properties}]}),
            json!({"oneOf": [{"required": ["a"], "properties": properties}]}),
        );
    }

    #[test]
    fn a_whole_object_names_its_kind() {
        let schema = root(
            &json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object"}}}),
            "example.com/v1",
            "Robot",
        );
        let expected = json!({
            "$schema": DRAFT,
            "type": "object",
            "required": ["apiVersion", "kind", "spec"],
            "additionalProperties": false,
            "properties": {
                "apiVersion": {"type": "string", "enum": ["example.com/v1"]},
                "kind": {"type": "string", "enum": ["Robot"]},
                "metadata": {"type": "object"},
                "spec": {"type": "object"},
            },
        });
        assert_eq!(Value::Object(schema), expected);
    }

    #[test]
    fn only_served_versions_have_files() {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let crd = json!({
            "kind": "CustomResourceDefinition", "metadata": {"name": "robots.example.com"},
            "spec": {
                "group": "example.com", "names": {"kind": "HTTPRobot"},
                "versions": [
                    {"name": "v1", "served": true, "schema": schema},
                    {"name": "v1beta1", "served": true, "schema": schema},
                    {"name": "v1alpha1", "served": false, "schema": schema},
                ],
            },
        });
        let files = json_schemas(std::slice::from_ref(&crd)).unwrap();
        let paths: Vec<_> = files.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "example.com/httprobot_v1.json",
                "example.com/httprobot_v1beta1.json"
            ]
        );
        // By this start, the command finds the files of an earlier call.
        let start = "{\n  \"$comment\": \"Generated from the CRD ";
        assert!(files.iter().all(|it| it.text.starts_with(start)));
        assert!(files.iter().all(|it| it.text.ends_with("}\n")));
        let mut without = crd;
        without["spec"]["versions"][0]
            .as_object_mut()
            .unwrap()
            .remove("schema");
        let error = json_schemas(&[without]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the CRD robots.example.com has no spec.versions[*].schema.openAPIV3Schema"
        );
    }
}
