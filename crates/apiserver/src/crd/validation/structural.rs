//! The rules of structural schemas.

use opkit_apimachinery::schema::pattern_error;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::props::Props;

/// The position of a schema in the object that it describes.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns the reason for which a schema cannot be a structural schema at all.
pub(super) fn init_error(schema: Props<'_>) -> Option<String> {
    let unsupported = |name: &str| Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    for (keyword, name) in [("id", "id"), ("$schema", "schema"), ("$ref", "$ref")] {
        if !schema.text(keyword).is_empty() {
            return unsupported(name);
        }
    }
    for keyword in ["patternProperties", "dependencies"] {
        if schema.map(keyword).is_some() {
            return unsupported(keyword);
        }
    }
    if schema.has("additionalItems") {
        return unsupported("additionalItems");
    }
    if schema.map("definitions").is_some() {
        return unsupported("definitions");
    }
    let nested = ["allOf", "anyOf", "oneOf"];
    let nested = nested.iter().flat_map(|keyword| schema.children(keyword));
    let mut nested = schema.child("not").into_iter().chain(nested);
    if let Some(error) = nested.find_map(init_error) {
        return Some(error);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == &json!(false) {
        let keyword = "x-kubernetes-preserve-unknown-fields";
        return Some(format!(
            "internal error: '{keyword}' must be true or undefined"
        ));
    }
    if schema
        .items()
        .is_some_and(|items| !items.schemas.is_empty())
    {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let item = schema.items().and_then(|items| items.schema);
    let additional = schema.additional().and_then(|additional| additional.schema);
    let properties = schema.named("properties").map(|(_, property)| property);
    let mut parts = item.into_iter().chain(properties).chain(additional);
    parts.find_map(init_error)
}

/// Returns the errors of a schema that is not structural, sorted as in Kubernetes.
pub(super) fn validate(schema: Props<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(schema: Props<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let field = |keyword: &str| format!("{path}.{keyword}");
    let item = schema.items().and_then(|items| items.schema);
    if schema.type_() == "array" && item.is_none() {
        errors.push(FieldError::required(field("items"), "must be specified"));
    }
    if let Some(item) = item {
        invariants(item, Level::Item, &field("items"), errors);
    }
    for (name, property) in schema.named("properties") {
        let path = field(&format!("properties[{name}]"));
        invariants(property, Level::Field, &path, errors);
    }
    let additional = schema.additional();
    if let Some(additional) = &additional {
        let path = field("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(
                path.as_str(),
                "must not be used at the root",
            ));
        }
        if let Some(schema) = additional.schema {
            invariants(schema, Level::Field, &path, errors);
        }
    }
    let is_embedded = schema.is_true("x-kubernetes-embedded-resource");
    let preserves = schema.is_true("x-kubernetes-preserve-unknown-fields");
    let is_int_or_string = schema.is_true("x-kubernetes-int-or-string");
    if is_int_or_string {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        for keyword in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if schema.is_true(keyword) {
                errors.push(FieldError::invalid(field(keyword), &json!(true), detail));
            }
        }
    }
    let skips_any_of = is_int_or_string_pattern(schema);
    let mut all_of = schema.children("allOf");
    let skips_first = all_of.next().is_some_and(is_int_or_string_pattern);
    value_validation(schema, skips_any_of, skips_first, path, errors);
    match schema.type_() {
        "object" => {}
        "" if is_embedded => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(FieldError::required(field("type"), detail));
        }
        type_ if is_embedded => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(FieldError::invalid(field("type"), &json!(type_), detail));
        }
        "" if !is_int_or_string && !preserves => {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            errors.push(FieldError::required(field("type"), detail));
        }
        _ => {}
    }
    if is_embedded && additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        let field = field("additionalProperties");
        errors.push(FieldError::forbidden(field, detail));
    }
    if level == Level::Root && !matches!(schema.type_(), "" | "object") {
        let value = json!(schema.type_());
        let detail = "must be object at the root";
        errors.push(FieldError::invalid(field("type"), &value, detail));
    }
    let is_resource = level == Level::Root || is_embedded;
    for name in ["kind", "apiVersion"] {
        let property = schema.property(name).filter(|_| is_resource);
        if let Some(property) = property.filter(|property| property.type_() != "string") {
            let field = field(&format!("properties[{name}].type"));
            let value = json!(property.type_());
            errors.push(FieldError::invalid(field, &value, "must be string"));
        }
    }
    if let Some(metadata) = schema.property("metadata") {
        let path = field("properties[metadata]");
        if is_resource && metadata.type_() != "object" {
            let value = json!(metadata.type_());
            let field = format!("{path}.type");
            errors.push(FieldError::invalid(field, &value, "must be object"));
        }
        if level == Level::Root && !is_plain_metadata(metadata) {
            let detail = "must not specify anything other than name and generateName, but \
                          metadata is implicitly specified";
            errors.push(FieldError::forbidden(path, detail));
        }
    }
    if is_embedded && !preserves && schema.map("properties").is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(field("properties"), detail));
    }
}

/// Reports whether the schema of `metadata` restricts nothing but the name and the generated name.
fn is_plain_metadata(metadata: Props<'_>) -> bool {
    let is_name = |name: &String| matches!(name.as_str(), "name" | "generateName");
    let mut keywords = metadata.0.as_object().into_iter().flatten();
    keywords.all(|(keyword, value)| match keyword.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_none_or(|properties| properties.keys().all(is_name)),
        "additionalProperties" => false,
        _ => matches!(value, Value::Null | Value::Bool(false)) || value == "",
    })
}

/// Reports whether `anyOf` has exactly the types integer and string.
fn is_int_or_string_pattern(schema: Props<'_>) -> bool {
    schema.get("anyOf") == &json!([{"type": "integer"}, {"type": "string"}])
}

/// Checks the keywords that restrict values. The types of integer or string are allowed in `anyOf`,
/// or in the `anyOf` of the first `allOf`.
fn value_validation(
    schema: Props<'_>,
    skips_any_of: bool,
    skips_first_all_of: bool,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if !skips_any_of {
        for (index, part) in schema.children("anyOf").enumerate() {
            nested(part, false, &format!("{path}.anyOf[{index}]"), errors);
        }
    }
    for (index, part) in schema.children("allOf").enumerate() {
        let skips = skips_first_all_of && index == 0;
        nested(part, skips, &format!("{path}.allOf[{index}]"), errors);
    }
    for (index, part) in schema.children("oneOf").enumerate() {
        nested(part, false, &format!("{path}.oneOf[{index}]"), errors);
    }
    if let Some(not) = schema.child("not") {
        nested(not, false, &format!("{path}.not"), errors);
    }
    let pattern = schema.text("pattern");
    if let Some(error) = pattern_error(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        let field = format!("{path}.pattern");
        errors.push(FieldError::invalid(field, &json!(pattern), detail));
    }
}

/// Checks a schema inside of `allOf`, `anyOf`, `oneOf` or `not`, which can only restrict values.
fn nested(schema: Props<'_>, skips_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    value_validation(schema, skips_any_of, false, path, errors);
    if let Some(item) = schema.items().and_then(|items| items.schema) {
        nested(item, false, &format!("{path}.items"), errors);
    }
    for (name, property) in schema.named("properties") {
        nested(
            property,
            false,
            &format!("{path}.properties[{name}]"),
            errors,
        );
    }
    let mut forbid = |is_set: bool, keyword: &str, detail: &str| {
        if is_set {
            let field = format!("{path}.{keyword}");
            let detail = format!("must be {detail} to be structural");
            errors.push(FieldError::forbidden(field, detail));
        }
    };
    let additional = schema.additional();
    let is_open = additional.is_some_and(|additional| additional.allows);
    forbid(!schema.type_().is_empty(), "type", "empty");
    forbid(is_open, "additionalProperties", "undefined");
    forbid(schema.has("default"), "default", "undefined");
    for keyword in ["title", "description"] {
        forbid(!schema.text(keyword).is_empty(), keyword, "empty");
    }
    for keyword in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(schema.is_true(keyword), keyword, "false");
    }
    let keys = "x-kubernetes-list-map-keys";
    forbid(!schema.list(keys).is_empty(), keys, "empty");
    for keyword in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        forbid(schema.has(keyword), keyword, "undefined");
    }
    let rules = "x-kubernetes-validations";
    forbid(!schema.list(rules).is_empty(), rules, "empty");
    if schema.property("metadata").is_some() {
        let field = format!("{path}.properties[metadata]");
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(field, detail));
    }
}

/// Checks that all fields in `allOf`, `anyOf`, `oneOf` and `not` of `value` are fields of
/// `structure`. The fields of the root alone are checked, as in Kubernetes.
fn completeness(
    value: Props<'_>,
    structure: Option<Props<'_>>,
    structure_path: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(not) = value.child("not") {
        nested_completeness(
            not,
            structure,
            structure_path,
            &format!("{path}.not"),
            errors,
        );
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in value.children(keyword).enumerate() {
            let path = format!("{path}.{keyword}[{index}]");
            nested_completeness(part, structure, structure_path, &path, errors);
        }
    }
}

fn nested_completeness(
    value: Props<'_>,
    structure: Option<Props<'_>>,
    structure_path: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(structure) = structure else {
        let detail = format!("because it is defined in {path}");
        errors.push(FieldError::required(structure_path, detail));
        return;
    };
    completeness(value, Some(structure), structure_path, path, errors);
    if let Some(item) = value.items().and_then(|items| items.schema) {
        let part = structure.items().and_then(|items| items.schema);
        let structure_path = format!("{structure_path}.items");
        nested_completeness(
            item,
            part,
            &structure_path,
            &format!("{path}.items"),
            errors,
        );
    }
    for (name, property) in value.named("properties") {
        let path = format!("{path}.properties[{name}]");
        let structure_path = format!("{structure_path}.properties[{name}]");
        let part = structure.property(name);
        nested_completeness(property, part, &structure_path, &path, errors);
    }
}
