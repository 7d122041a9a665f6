//! Validation of the spec of a CRD.

use std::collections::HashSet;

use opkit_apimachinery::names::{check_dns_subdomain, check_rfc_1035_label};
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::internal::{Spec, Version};
use super::options::Options;
use super::{conversion, names, schema, selectable};
use crate::object;

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];
/// The types of printer columns.
const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
/// The formats of printer columns.
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";
/// Maximum length of a deprecation warning in bytes.
const WARNING_MAX: usize = 256;

/// Returns the errors of the spec of a CRD.
pub(super) fn validate(crd: &Value, options: &Options) -> Vec<FieldError> {
    let spec = Spec::of(crd);
    let mut errors = group_error(spec.spec).into_iter().collect::<Vec<_>>();
    errors.extend(one_of(spec.spec, "scope", "spec.scope", &SCOPES));
    let preserves = object::at(spec.spec, &["preserveUnknownFields"]) == &json!(true);
    errors.extend(missing_schemas(&spec, options, preserves));
    let has_defaults = || {
        let mut schemas = spec.schemas();
        schemas.any(|schema| schema.any(&mut |part| part.has("default")))
    };
    if preserves && has_defaults() {
        let detail = "must be false in order to use defaults in the schema";
        let field = "spec.preserveUnknownFields";
        errors.push(FieldError::invalid(field, &json!(true), detail));
    }
    let requires_structure = options.requires_structural_schema
        || !preserves
        || has_defaults()
        || spec.schemas().any(schema::has_extensions);
    let checks = schema::Checks {
        options,
        requires_structure,
    };
    for (index, version) in spec.versions.iter().enumerate() {
        errors.extend(validate_version(&spec, version, index, &checks));
    }
    errors.extend(version_errors(&spec));
    let declared = object::at(spec.spec, &["names"]);
    errors.extend(names::missing(declared));
    errors.extend(names::validate(declared, "spec.names"));
    let has_status = has_status(spec.shared.subresources)
        || spec.versions.iter().any(|v| has_status(v.own.subresources));
    let first = spec.versions.first();
    let first = first.map_or("", |first| object::text(first.version, &["name"]));
    let validation = spec.shared.validation;
    errors.extend(checks.validate(validation, first, has_status, "spec.validation"));
    errors.extend(subresource_errors(
        spec.shared.subresources,
        "spec.subresources",
    ));
    errors.extend(column_errors(
        spec.shared.columns,
        "spec.additionalPrinterColumns",
    ));
    errors.extend(shared_selectable_fields(&spec, options));
    errors.extend(conversion::validate(spec.spec, preserves, options));
    errors
}

fn group_error(spec: &Value) -> Option<FieldError> {
    let group = object::text(spec, &["group"]);
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    let detail = match check_dns_subdomain(group) {
        Err(detail) => detail,
        Ok(()) if group.contains('.') => return None,
        Ok(()) => "should be a domain with at least one dot".to_owned(),
    };
    Some(FieldError::invalid("spec.group", &json!(group), detail))
}

/// Checks that a field has one of the supported values.
pub(super) fn one_of(
    parent: &Value,
    name: &str,
    field: &str,
    supported: &[&str],
) -> Option<FieldError> {
    match object::text(parent, &[name]) {
        "" => Some(FieldError::required(field, "")),
        value if supported.contains(&value) => None,
        value => Some(FieldError::not_supported(field, &json!(value), supported)),
    }
}

fn missing_schemas(spec: &Spec<'_>, options: &Options, preserves: bool) -> Vec<FieldError> {
    if !object::at(spec.shared.validation, &["openAPIV3Schema"]).is_null() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (index, version) in spec.versions.iter().enumerate() {
        let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
        if !object::at(version.own.validation, &["openAPIV3Schema"]).is_null() {
            continue;
        }
        let is_served = object::at(version.version, &["served"]) == &json!(true);
        if options.requires_schema {
            errors.push(FieldError::required(field, ""));
        } else if !preserves && is_served {
            let detail = "because otherwise all fields are pruned";
            errors.push(FieldError::required(field, detail));
        }
    }
    errors
}

fn validate_version(
    spec: &Spec<'_>,
    version: &Version<'_>,
    index: usize,
    checks: &schema::Checks<'_>,
) -> Vec<FieldError> {
    let path = format!("spec.versions[{index}]");
    let name = object::text(version.version, &["name"]);
    let mut errors = Vec::new();
    if let Err(detail) = check_rfc_1035_label(name) {
        let field = format!("{path}.name");
        errors.push(FieldError::invalid(field, &json!(name), detail));
    }
    errors.extend(warning_errors(version.version, &path));
    let has_own = spec.versions.iter().any(|v| !v.own.subresources.is_null());
    let has_status = has_status(match has_own {
        true => version.own.subresources,
        false => spec.shared.subresources,
    });
    let field = format!("{path}.schema");
    errors.extend(checks.validate(version.own.validation, name, has_status, &field));
    let field = format!("{path}.subresources");
    errors.extend(subresource_errors(version.own.subresources, &field));
    let field = format!("{path}.additionalPrinterColumns");
    errors.extend(column_errors(version.own.columns, &field));
    let fields = version.own.selectable_fields;
    if fields.as_array().is_some_and(|fields| !fields.is_empty()) {
        let field = format!("{path}.selectableFields");
        let schema = object::at(version.own.validation, &["openAPIV3Schema"]);
        if schema.is_null() {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(FieldError::invalid(field, &json!(""), detail));
        } else {
            let excess = &checks.options.too_many_selectable_fields;
            let is_excess_allowed = excess.iter().any(|version| version == name);
            errors.extend(selectable::validate(
                fields,
                schema,
                &field,
                is_excess_allowed,
            ));
        }
    }
    errors
}

/// Returns the errors of the deprecation warning of a version.
fn warning_errors(version: &Value, path: &str) -> Vec<FieldError> {
    let field = format!("{path}.deprecationWarning");
    let value = object::at(version, &["deprecationWarning"]);
    let Some(warning) = value.as_str() else {
        return Vec::new();
    };
    let invalid = |detail: String| FieldError::invalid(field.as_str(), value, detail);
    if object::at(version, &["deprecated"]) != &json!(true) {
        return vec![invalid(
            "can only be set for deprecated versions".to_owned(),
        )];
    }
    let mut errors = Vec::new();
    if warning.len() > WARNING_MAX {
        errors.push(invalid("must be <= 256 characters long".to_owned()));
    }
    if warning.is_empty() {
        errors.push(invalid("must not be an empty string".to_owned()));
    }
    let is_unprintable = |c: &char| c.is_control() || (c.is_whitespace() && *c != ' ');
    let mut characters = warning.char_indices();
    if let Some((index, _)) = characters.find(|(_, c)| is_unprintable(c)) {
        errors.push(invalid(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {index}"
        )));
    }
    errors
}

/// Returns the errors of the list of versions as a whole.
fn version_errors(spec: &Spec<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut invalid = |detail: &str| {
        let shown = spec.shown_versions();
        errors.push(FieldError::invalid_shown("spec.versions", shown, detail));
    };
    let mut seen = HashSet::new();
    let mut names = spec
        .versions
        .iter()
        .map(|v| object::at(v.version, &["name"]));
    if !names.all(|name| seen.insert(name.as_str().unwrap_or_default())) {
        invalid("must contain unique version names");
    }
    let is_storage = |v: &&Version<'_>| object::at(v.version, &["storage"]) == &json!(true);
    if spec.versions.iter().filter(is_storage).count() != 1 {
        invalid("must have exactly one version marked as storage version");
    }
    // The internal form repeats the name of the first version.
    let first = spec.versions.first();
    if let Some(name) = first.map(|first| object::at(first.version, &["name"]))
        && let Err(detail) = check_rfc_1035_label(name.as_str().unwrap_or_default())
        && name.as_str().is_some_and(|name| !name.is_empty())
    {
        errors.push(FieldError::invalid("spec.version", name, detail));
    }
    errors
}

fn has_status(subresources: &Value) -> bool {
    !object::at(subresources, &["status"]).is_null()
}

fn shared_selectable_fields(spec: &Spec<'_>, options: &Options) -> Vec<FieldError> {
    let fields = spec.shared.selectable_fields;
    if fields.as_array().is_none_or(Vec::is_empty) {
        return Vec::new();
    }
    let field = "spec.selectableFields";
    if spec.shared.validation.is_null() {
        let detail = "may only be set when validations.schema is included";
        return vec![FieldError::invalid(field, &json!(""), detail)];
    }
    let schema = object::at(spec.shared.validation, &["openAPIV3Schema"]);
    let excess = &options.too_many_selectable_fields;
    let is_excess_allowed = excess.iter().any(String::is_empty);
    selectable::validate(fields, schema, field, is_excess_allowed)
}

/// Returns the errors of the paths of the subresource `scale`.
fn subresource_errors(subresources: &Value, path: &str) -> Vec<FieldError> {
    let scale = object::at(subresources, &["scale"]);
    if scale.is_null() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let mut check = |name: &str, prefixes: &[&str], place: &str, is_required: bool| {
        let field = format!("{path}.scale.{name}");
        let value = object::text(scale, &[name]);
        if value.is_empty() {
            errors.extend(is_required.then(|| FieldError::required(field, "")));
        } else if let Some(error) = path_error(value, &field) {
            errors.push(error);
        } else if !prefixes.iter().any(|prefix| value.starts_with(prefix)) {
            let detail = format!("should be a json path under {place}");
            errors.push(FieldError::invalid(field, &json!(value), detail));
        }
    };
    check("specReplicasPath", &[".spec."], ".spec", true);
    check("statusReplicasPath", &[".status."], ".status", true);
    let place = "either .spec or .status";
    check("labelSelectorPath", &[".spec.", ".status."], place, false);
    errors
}

fn column_errors(columns: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let text = |name: &str| object::text(column, &[name]);
        let field = |name: &str| format!("{path}[{index}].{name}");
        if text("name").is_empty() {
            errors.push(FieldError::required(field("name"), ""));
        }
        let is_in = |list: &str, value: &str| list.split(',').any(|item| item == value);
        let detail = format!("must be one of {COLUMN_TYPES}");
        match text("type") {
            "" => errors.push(FieldError::required(field("type"), detail)),
            type_ if is_in(COLUMN_TYPES, type_) => {}
            type_ => errors.push(FieldError::invalid(field("type"), &json!(type_), detail)),
        }
        let format = text("format");
        if !format.is_empty() && !is_in(COLUMN_FORMATS, format) {
            let detail = format!("must be one of {COLUMN_FORMATS}");
            errors.push(FieldError::invalid(field("format"), &json!(format), detail));
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(field("JSONPath"), "")),
            value => errors.extend(path_error(value, &field("JSONPath"))),
        }
    }
    errors
}

/// Returns the error for a path that does not begin with a dot.
fn path_error(value: &str, field: &str) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!value.starts_with('.')).then(|| FieldError::invalid(field, &json!(value), detail))
}
