//! The internal form of a CRD in Kubernetes.
//!
//! In the internal form, a field that has the same value in all versions is a field of the spec:
//! `validation`, `subresources`, `additionalPrinterColumns` and `selectableFields`. The paths of
//! errors are those of the internal form.

use serde_json::{Value, json};

use super::props::Props;
use crate::object;

static NULL: Value = Value::Null;

/// The fields of a version that can be fields of the spec.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    /// The field `schema`.
    pub(super) validation: &'a Value,
    pub(super) subresources: &'a Value,
    pub(super) columns: &'a Value,
    pub(super) selectable_fields: &'a Value,
}

/// The spec of a CRD in its internal form.
pub(super) struct Spec<'a> {
    pub(super) spec: &'a Value,
    /// The fields that all versions have in common.
    pub(super) shared: Shared<'a>,
    pub(super) versions: Vec<Version<'a>>,
}

/// A version of a CRD in its internal form.
pub(super) struct Version<'a> {
    pub(super) version: &'a Value,
    /// The fields in which the versions differ.
    pub(super) own: Shared<'a>,
}

impl<'a> Spec<'a> {
    pub(super) fn of(crd: &'a Value) -> Self {
        let spec = object::at(crd, &["spec"]);
        let versions = object::items(spec, &["versions"]);
        let (validation, validations) = hoist(versions, "schema");
        let (subresources, subresource_lists) = hoist(versions, "subresources");
        let (columns, column_lists) = hoist(versions, "additionalPrinterColumns");
        let (selectable_fields, field_lists) = hoist(versions, "selectableFields");
        let own = |index: usize, values: &[&'a Value]| values.get(index).copied().unwrap_or(&NULL);
        Self {
            spec,
            shared: Shared {
                validation,
                subresources,
                columns,
                selectable_fields,
            },
            versions: versions
                .iter()
                .enumerate()
                .map(|(index, version)| Version {
                    version,
                    own: Shared {
                        validation: own(index, &validations),
                        subresources: own(index, &subresource_lists),
                        columns: own(index, &column_lists),
                        selectable_fields: own(index, &field_lists),
                    },
                })
                .collect(),
        }
    }

    /// Returns the schemas: that of all versions, and those of single versions.
    pub(super) fn schemas(&self) -> impl Iterator<Item = Props<'a>> {
        let validations = self.versions.iter().map(|version| version.own.validation);
        let all = std::iter::once(self.shared.validation).chain(validations);
        all.filter_map(|validation| Props::of(object::at(validation, &["openAPIV3Schema"])))
    }

    /// Returns the versions as Kubernetes prints them in errors: as JSON of its internal type.
    pub(super) fn shown_versions(&self) -> String {
        let versions: Vec<String> = self.versions.iter().map(shown_version).collect();
        format!("[{}]", versions.join(","))
    }
}

/// Returns the value of a field if it is the same in all versions, or else the value of the field
/// in each version.
fn hoist<'a>(versions: &'a [Value], field: &str) -> (&'a Value, Vec<&'a Value>) {
    let values: Vec<&Value> = versions
        .iter()
        .map(|version| object::at(version, &[field]))
        .map(|value| match value {
            Value::Array(items) if items.is_empty() => &NULL,
            value => value,
        })
        .collect();
    match values.split_first() {
        Some((first, rest)) if rest.iter().all(|value| value == first) => (first, Vec::new()),
        _ => (&NULL, values),
    }
}

/// Formats a list of fields as a JSON object in this order.
fn object_text(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Formats a value as Go's encoder does, which escapes some characters for HTML.
fn plain(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

fn text(value: &Value) -> String {
    plain(&json!(value.as_str().unwrap_or_default()))
}

fn flag(value: &Value) -> String {
    value.as_bool().unwrap_or_default().to_string()
}

fn list(value: &Value, show: impl Fn(&Value) -> String) -> String {
    match value.as_array() {
        None => "null".to_owned(),
        Some(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(","))
        }
    }
}

fn optional(value: &Value, show: impl Fn(&Value) -> String) -> String {
    match value {
        Value::Null => "null".to_owned(),
        value => show(value),
    }
}

fn shown_version(version: &Version<'_>) -> String {
    let get = |field: &str| object::at(version.version, &[field]);
    let own = &version.own;
    object_text(&[
        ("Name", text(get("name"))),
        ("Served", flag(get("served"))),
        ("Storage", flag(get("storage"))),
        ("Deprecated", flag(get("deprecated"))),
        ("DeprecationWarning", plain(get("deprecationWarning"))),
        (
            "Schema",
            optional(own.validation, |validation| {
                let schema = object::at(validation, &["openAPIV3Schema"]);
                object_text(&[("OpenAPIV3Schema", optional(schema, shown_schema))])
            }),
        ),
        (
            "Subresources",
            optional(own.subresources, shown_subresources),
        ),
        ("AdditionalPrinterColumns", list(own.columns, shown_column)),
        (
            "SelectableFields",
            list(own.selectable_fields, |field| {
                let path = object::at(field, &["jsonPath"]);
                object_text(&[("JSONPath", text(path))])
            }),
        ),
    ])
}

fn shown_subresources(subresources: &Value) -> String {
    let status = object::at(subresources, &["status"]);
    let scale = object::at(subresources, &["scale"]);
    object_text(&[
        ("Status", optional(status, |_| "{}".to_owned())),
        (
            "Scale",
            optional(scale, |scale| {
                let get = |field: &str| object::at(scale, &[field]);
                object_text(&[
                    ("SpecReplicasPath", text(get("specReplicasPath"))),
                    ("StatusReplicasPath", text(get("statusReplicasPath"))),
                    ("LabelSelectorPath", plain(get("labelSelectorPath"))),
                ])
            }),
        ),
    ])
}

fn shown_column(column: &Value) -> String {
    let get = |field: &str| object::at(column, &[field]);
    object_text(&[
        ("Name", text(get("name"))),
        ("Type", text(get("type"))),
        ("Format", text(get("format"))),
        ("Description", text(get("description"))),
        (
            "Priority",
            get("priority").as_i64().unwrap_or(0).to_string(),
        ),
        ("JSONPath", text(get("jsonPath"))),
    ])
}

/// Formats a schema as JSON of Kubernetes' internal type.
pub(super) fn shown_schema(schema: &Value) -> String {
    let get = |keyword: &str| object::at(schema, &[keyword]);
    let schemas = |keyword: &str| list(get(keyword), shown_schema);
    let named = |keyword: &str, show: &dyn Fn(&Value) -> String| match get(keyword).as_object() {
        None => "null".to_owned(),
        Some(entries) => {
            let entries = entries.iter();
            let shown =
                entries.map(|(name, part)| format!("{}:{}", plain(&json!(name)), show(part)));
            format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
        }
    };
    let or_bool = |keyword: &str| {
        optional(get(keyword), |value| {
            let part = optional(Props::of(value).map_or(&NULL, |part| part.0), shown_schema);
            let allows = value.as_bool().unwrap_or(true);
            object_text(&[("Allows", allows.to_string()), ("Schema", part)])
        })
    };
    let items = optional(get("items"), |items| {
        let one = optional(Props::of(items).map_or(&NULL, |part| part.0), shown_schema);
        object_text(&[("Schema", one), ("JSONSchemas", list(items, shown_schema))])
    });
    let docs = optional(get("externalDocs"), |docs| {
        let field = |name: &str| text(object::at(docs, &[name]));
        object_text(&[("Description", field("description")), ("URL", field("url"))])
    });
    object_text(&[
        ("ID", text(get("id"))),
        ("Schema", text(get("$schema"))),
        ("Ref", plain(get("$ref"))),
        ("Description", text(get("description"))),
        ("Type", text(get("type"))),
        ("Nullable", flag(get("nullable"))),
        ("Format", text(get("format"))),
        ("Title", text(get("title"))),
        ("Default", plain(get("default"))),
        ("Maximum", plain(get("maximum"))),
        ("ExclusiveMaximum", flag(get("exclusiveMaximum"))),
        ("Minimum", plain(get("minimum"))),
        ("ExclusiveMinimum", flag(get("exclusiveMinimum"))),
        ("MaxLength", plain(get("maxLength"))),
        ("MinLength", plain(get("minLength"))),
        ("Pattern", text(get("pattern"))),
        ("MaxItems", plain(get("maxItems"))),
        ("MinItems", plain(get("minItems"))),
        ("UniqueItems", flag(get("uniqueItems"))),
        ("MultipleOf", plain(get("multipleOf"))),
        ("Enum", list(get("enum"), plain)),
        ("MaxProperties", plain(get("maxProperties"))),
        ("MinProperties", plain(get("minProperties"))),
        ("Required", list(get("required"), plain)),
        ("Items", items),
        ("AllOf", schemas("allOf")),
        ("OneOf", schemas("oneOf")),
        ("AnyOf", schemas("anyOf")),
        ("Not", optional(get("not"), shown_schema)),
        ("Properties", named("properties", &shown_schema)),
        ("AdditionalProperties", or_bool("additionalProperties")),
        (
            "PatternProperties",
            named("patternProperties", &shown_schema),
        ),
        ("Dependencies", named("dependencies", &shown_dependency)),
        ("AdditionalItems", or_bool("additionalItems")),
        ("Definitions", named("definitions", &shown_schema)),
        ("ExternalDocs", docs),
        ("Example", plain(get("example"))),
        (
            "XPreserveUnknownFields",
            plain(get("x-kubernetes-preserve-unknown-fields")),
        ),
        (
            "XEmbeddedResource",
            flag(get("x-kubernetes-embedded-resource")),
        ),
        ("XIntOrString", flag(get("x-kubernetes-int-or-string"))),
        (
            "XListMapKeys",
            list(get("x-kubernetes-list-map-keys"), plain),
        ),
        ("XListType", plain(get("x-kubernetes-list-type"))),
        ("XMapType", plain(get("x-kubernetes-map-type"))),
        (
            "XValidations",
            list(get("x-kubernetes-validations"), shown_rule),
        ),
    ])
}

fn shown_dependency(dependency: &Value) -> String {
    let schema = Props::of(dependency).map_or(&NULL, |part| part.0);
    object_text(&[
        ("Schema", optional(schema, shown_schema)),
        ("Property", list(dependency, plain)),
    ])
}

fn shown_rule(rule: &Value) -> String {
    let get = |field: &str| object::at(rule, &[field]);
    object_text(&[
        ("Rule", text(get("rule"))),
        ("Message", text(get("message"))),
        ("MessageExpression", text(get("messageExpression"))),
        ("Reason", plain(get("reason"))),
        ("FieldPath", text(get("fieldPath"))),
        ("OptionalOldSelf", plain(get("optionalOldSelf"))),
    ])
}
