//! Validation of one schema of a CRD: its structure, its defaults, its keywords and its CEL rules.

use opkit_apimachinery::schema::Schema;
use opkit_apimachinery::structural::{self as values, FieldError};
use opkit_cel::{RuleOptions, compile_rules};
use serde_json::{Value, json};

use super::internal::{self, Spec};
use super::openapi::{self, Place};
use super::options::Options;
use super::props::Props;
use super::{defaults, structural};
use crate::object;

/// The keywords that are allowed at the root of a schema with the subresource `status`, with their
/// names in Kubernetes' internal type.
const ALLOWED_AT_ROOT: &[(&str, &str)] = &[
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
    ),
    ("XValidations", "x-kubernetes-validations"),
];

/// The rules for the schemas of a CRD.
pub(super) struct Checks<'o> {
    pub(super) options: &'o Options,
    /// Whether the schemas must be structural.
    pub(super) requires_structure: bool,
}

impl Checks<'_> {
    /// Returns the errors of the schema in `validation`, which is that of the version `version`.
    pub(super) fn validate(
        &self,
        validation: &Value,
        version: &str,
        has_status: bool,
        path: &str,
    ) -> Vec<FieldError> {
        let Some(schema) = Props::of(object::at(validation, &["openAPIV3Schema"])) else {
            return Vec::new();
        };
        let path = format!("{path}.openAPIV3Schema");
        let mut errors = Vec::new();
        if has_status {
            errors.extend(root_error(schema, &path));
        }
        if schema.is_true("nullable") {
            let field = format!("{path}.nullable");
            errors.push(FieldError::forbidden(
                field,
                "nullable cannot be true at the root",
            ));
        }
        let mut init_error = None;
        let mut parsed = None;
        if self.requires_structure {
            let found = match structural::init_error(schema) {
                Some(error) => {
                    init_error = Some(error);
                    Vec::new()
                }
                None => {
                    let found = structural::validate(schema, &path);
                    parsed = found
                        .is_empty()
                        .then(|| Schema::parse(schema.0).ok())
                        .flatten();
                    found
                }
            };
            errors.extend(found);
            if let Some(schema) = &parsed {
                let prunes = self.options.requires_pruned_defaults;
                let found = defaults::validate(schema, &path, prunes);
                let is_valid = found.is_empty();
                errors.extend(found);
                parsed = parsed.filter(|_| is_valid);
            }
        }
        let malformed = openapi::validate(schema, &Place::root(path.clone()), self.options);
        let rules = parsed.map(|schema| {
            let is_invalid = |level: &str| {
                let mut malformed = malformed.iter();
                malformed.any(|error| is_within(&error.field, level))
            };
            let unchanged = &self.options.unchanged_schemas;
            let options = RuleOptions {
                is_invalid: &is_invalid,
                limits_rules: !unchanged.iter().any(|unchanged| unchanged == version),
            };
            compile_rules(&schema, &path, &options)
        });
        // Errors of the total cost come last, like those of the rules.
        errors.extend(malformed);
        errors.extend(rules.into_iter().flatten());
        if errors.is_empty()
            && let Some(error) = init_error
        {
            errors.push(FieldError::invalid(path, &json!(""), error));
        }
        errors
    }
}

fn is_within(field: &str, level: &str) -> bool {
    let rest = field.strip_prefix(level);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the error for a keyword that is not allowed at the root of a schema with the subresource
/// `status`.
fn root_error(schema: Props<'_>, path: &str) -> Option<FieldError> {
    let type_ = schema.type_();
    let is_allowed = |keyword: &str| ALLOWED_AT_ROOT.iter().any(|(_, known)| *known == keyword);
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value != "";
    let keywords = schema.0.as_object().into_iter().flatten();
    let mut unknown = keywords.filter(|(keyword, value)| is_set(value) && !is_allowed(keyword));
    if !type_.is_empty() && type_ != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        let field = format!("{path}.type");
        return Some(FieldError::invalid(field, &json!(type_), detail));
    }
    unknown.next().map(|_| {
        let names: Vec<&str> = ALLOWED_AT_ROOT.iter().map(|(name, _)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            names.join(" ")
        );
        FieldError::invalid_shown(path, internal::shown_schema(schema.0), detail)
    })
}

/// Reports whether a schema has extensions of Kubernetes, for which it must be structural.
pub(super) fn has_extensions(schema: Props<'_>) -> bool {
    schema.any(&mut |part| {
        part.is_true("x-kubernetes-embedded-resource")
            || part.has("x-kubernetes-preserve-unknown-fields")
            || part.is_true("x-kubernetes-int-or-string")
            || !part.list("x-kubernetes-list-map-keys").is_empty()
            || part.has("x-kubernetes-list-type")
            || !part.list("x-kubernetes-validations").is_empty()
    })
}

/// Returns the formats in the schemas of a CRD that Kubernetes does not check.
pub(crate) fn unrecognized_formats(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for schema in Spec::of(crd).schemas() {
        schema.any(&mut |part| {
            let format = part.text("format");
            if !format.is_empty() && !values::is_known_format(part.type_(), format) {
                found.push(format.to_owned());
            }
            false
        });
    }
    found
}
