//! Validation of the keywords of a schema.

use opkit_apimachinery::schema::Schema;
use opkit_apimachinery::structural::FieldError;
use opkit_cel::malformed_level;
use serde_json::{Value, json};

use super::options::Options;
use super::props::Props;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const LIST_TYPES: [&str; 3] = ["atomic", "set", "map"];
const MAP_TYPES: [&str; 2] = ["atomic", "granular"];
const META_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// The position of a schema.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: String,
    is_root: bool,
    /// The reason for which the schema cannot have defaults.
    forbids_defaults: Option<String>,
    /// Whether the schema is that of the type or the metadata of a resource, or inside of it.
    is_in_metadata: bool,
}

impl Place {
    pub(super) fn root(path: String) -> Self {
        Self {
            path,
            is_root: true,
            forbids_defaults: None,
            is_in_metadata: false,
        }
    }

    fn below(&self, part: &str) -> Self {
        Self {
            path: format!("{}.{part}", self.path),
            is_root: false,
            ..self.clone()
        }
    }
}

/// Returns the errors of a schema and of the schemas in it.
pub(super) fn validate(schema: Props<'_>, place: &Place, options: &Options) -> Vec<FieldError> {
    let mut errors = keyword_errors(schema, place, options);
    let path = &place.path;
    if schema.is_true("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
    }
    if let Some(additional) = schema.additional() {
        let is_open = additional.allows && additional.schema.is_none();
        if schema.map("properties").is_some() && !is_open {
            let detail = "additionalProperties and properties are mutual exclusive";
            let field = format!("{path}.additionalProperties");
            errors.push(FieldError::forbidden(field, detail));
        }
        let mut below = place.below("additionalProperties");
        if place.is_in_metadata {
            let reason = "inside additionalProperties applying to object metadata";
            below.forbids_defaults = Some(reason.to_owned());
        }
        if let Some(schema) = additional.schema {
            errors.extend(validate(schema, &below, options));
        }
    }
    for (name, property) in schema.named("properties") {
        let mut below = place.below(&format!("properties[{name}]"));
        let is_resource = place.is_root || schema.is_true("x-kubernetes-embedded-resource");
        if is_resource && META_FIELDS.contains(&name.as_str()) {
            below.is_in_metadata = true;
            if place.is_root {
                below.forbids_defaults = Some(format!("in top-level {name}"));
            }
        }
        errors.extend(validate(property, &below, options));
    }
    if let Some(not) = schema.child("not") {
        errors.extend(validate(not, &place.below("not"), options));
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for (index, part) in schema.children(keyword).enumerate() {
            let below = place.below(&format!("{keyword}[{index}]"));
            errors.extend(validate(part, &below, options));
        }
    }
    for (name, part) in schema.named("definitions") {
        let below = place.below(&format!("definitions[{name}]"));
        errors.extend(validate(part, &below, options));
    }
    if let Some(items) = schema.items() {
        if let Some(item) = items.schema {
            errors.extend(validate(item, &place.below("items"), options));
        }
        for (index, item) in items.schemas.iter().filter_map(Props::of).enumerate() {
            let below = place.below(&format!("items[{index}]"));
            errors.extend(validate(item, &below, options));
        }
    }
    for (name, part) in schema.named("dependencies") {
        let below = place.below(&format!("dependencies[{name}]"));
        errors.extend(validate(part, &below, options));
    }
    errors.extend(extension_errors(schema, path, options));
    if options.requires_map_keys {
        errors.extend(map_key_errors(schema, path));
    }
    let rules = schema.list("x-kubernetes-validations");
    let parsed = Schema::parse(schema.0).ok();
    errors.extend(malformed_level(rules, parsed.as_ref(), path));
    errors
}

/// Reports whether a schema has no type or one of OpenAPI v3.
pub(super) fn has_valid_type(schema: Props<'_>) -> bool {
    schema.type_().is_empty() || TYPES.contains(&schema.type_())
}

/// Returns the errors of keywords that CRDs cannot have.
fn keyword_errors(schema: Props<'_>, place: &Place, options: &Options) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |keyword: &str| format!("{}.{keyword}", place.path);
    if options.requires_valid_types && !has_valid_type(schema) {
        let type_ = schema.get("type");
        errors.push(FieldError::not_supported(field("type"), type_, &TYPES));
    }
    let mut forbid = |keyword: &str, detail: &str| {
        errors.push(FieldError::forbidden(field(keyword), detail));
    };
    if schema.has("default")
        && let Some(reason) = &place.forbids_defaults
    {
        forbid("default", &format!("must not be set {reason}"));
    }
    if !schema.text("id").is_empty() {
        forbid("id", "id is not supported");
    }
    if schema.has("additionalItems") {
        forbid("additionalItems", "additionalItems is not supported");
    }
    for keyword in ["patternProperties", "definitions"] {
        if schema.map(keyword).is_some() {
            forbid(keyword, &format!("{keyword} is not supported"));
        }
    }
    for keyword in ["dependencies", "$ref"] {
        if schema.has(keyword) {
            forbid(keyword, &format!("{keyword} is not supported"));
        }
    }
    if schema.type_() == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        forbid("type", detail);
    }
    if schema
        .items()
        .is_some_and(|items| !items.schemas.is_empty())
    {
        forbid("items", "items must be a schema object and not an array");
    }
    if place.is_in_metadata && schema.is_true("x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        forbid("x-kubernetes-embedded-resource", detail);
    }
    errors
}

/// Returns the errors of the types of lists and maps.
fn extension_errors(schema: Props<'_>, path: &str, options: &Options) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |keyword: &str| format!("{path}.{keyword}");
    if schema.get("x-kubernetes-preserve-unknown-fields") == &json!(false) {
        let field = field("x-kubernetes-preserve-unknown-fields");
        let detail = "must be true or undefined";
        errors.push(FieldError::invalid(field, &json!(false), detail));
    }
    let type_error = |wanted: &str, keyword: &str| {
        let detail = format!("must be {wanted} if {keyword} is specified");
        match schema.type_() {
            type_ if type_ == wanted => None,
            "" => Some(FieldError::required(field("type"), detail)),
            type_ => Some(FieldError::invalid(field("type"), &json!(type_), detail)),
        }
    };
    if let Some(map_type) = schema.map_type() {
        let keyword = "x-kubernetes-map-type";
        errors.extend(type_error("object", keyword));
        if !MAP_TYPES.contains(&map_type) {
            let value = json!(map_type);
            errors.push(FieldError::not_supported(
                field(keyword),
                &value,
                &MAP_TYPES,
            ));
        }
    }
    let keyword = "x-kubernetes-list-type";
    if let Some(list_type) = schema.list_type() {
        let wrong = type_error("array", keyword);
        if wrong.is_none() && options.requires_atomic_sets {
            errors.extend(atomic_set_error(schema, path));
        }
        errors.extend(wrong);
        if !LIST_TYPES.contains(&list_type) {
            let value = json!(list_type);
            errors.push(FieldError::not_supported(
                field(keyword),
                &value,
                &LIST_TYPES,
            ));
        }
    }
    if !schema.list("x-kubernetes-list-map-keys").is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match schema.list_type() {
            Some("map") => {}
            None => errors.push(FieldError::required(field(keyword), detail)),
            Some(other) => {
                errors.push(FieldError::invalid(field(keyword), &json!(other), detail));
            }
        }
    }
    if schema.list_type() == Some("map") {
        errors.extend(list_map_errors(schema, path));
    }
    errors
}

/// Returns the error for a set whose items are not atomic.
pub(super) fn atomic_set_error(schema: Props<'_>, path: &str) -> Option<FieldError> {
    if schema.list_type() != Some("set") || schema.type_() != "array" {
        return None;
    }
    let items = schema.items()?.schema?;
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list_type = items.get("x-kubernetes-list-type");
    let keyword = match items.type_() {
        "array" if items.list_type().is_some_and(|type_| type_ != "atomic") => {
            "x-kubernetes-list-type"
        }
        "object" if items.map_type() != Some("atomic") => "x-kubernetes-map-type",
        _ => return None,
    };
    let field = format!("{path}.items.{keyword}");
    // Kubernetes prints the type of the list in both cases.
    Some(FieldError::invalid(field, list_type, detail))
}

fn list_map_errors(schema: Props<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |keyword: &str| format!("{path}.{keyword}");
    let keys = schema.get("x-kubernetes-list-map-keys");
    if schema.list("x-kubernetes-list-map-keys").is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        let field = field("x-kubernetes-list-map-keys");
        errors.push(FieldError::required(field, detail));
    }
    let Some(items) = schema.items() else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(field("items"), detail));
        return errors;
    };
    let Some(item) = items.schema else {
        let detail = "must only have a single schema if x-kubernetes-list-type is map";
        let value = schema.get("items");
        errors.push(FieldError::invalid(field("items"), value, detail));
        return errors;
    };
    if item.type_() != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let value = json!(item.type_());
        errors.push(FieldError::invalid(field("items.type"), &value, detail));
        return errors;
    }
    let mut seen = Vec::new();
    for key in schema.texts("x-kubernetes-list-map-keys") {
        match item.property(key) {
            None => {
                let detail = "entries must all be names of item properties";
                let field = field("x-kubernetes-list-map-keys");
                errors.push(FieldError::invalid(field, keys, detail));
            }
            Some(property) if matches!(property.type_(), "array" | "object") => {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field = field(&format!("items.properties[{key}].type"));
                errors.push(FieldError::invalid(field, &json!("object"), detail));
            }
            Some(_) => {}
        }
        if seen.contains(&key) {
            let detail = "must not contain duplicate entries";
            let field = field("x-kubernetes-list-map-keys");
            errors.push(FieldError::invalid(field, keys, detail));
        }
        seen.push(key);
    }
    errors
}

/// Returns the errors of the items of sets and maps: they cannot be null, and the keys of a map
/// must be required or have defaults.
pub(super) fn map_key_errors(schema: Props<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list_type = schema.list_type().unwrap_or_default();
    let item = schema.items().and_then(|items| items.schema);
    let Some(item) = item.filter(|_| matches!(list_type, "set" | "map")) else {
        return errors;
    };
    if item.is_true("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(
            format!("{path}.items.nullable"),
            detail,
        ));
    }
    if list_type == "set" {
        return errors;
    }
    for key in schema.texts("x-kubernetes-list-map-keys") {
        let Some(property) = item.property(key) else {
            continue;
        };
        let field = |keyword: &str| format!("{path}.items.properties[{key}].{keyword}");
        let is_required = item.list("required").contains(&Value::from(key));
        if !is_required && !property.has("default") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(FieldError::required(field("default"), detail));
        }
        if property.is_true("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(field("nullable"), detail));
        }
    }
    errors
}
