//! CustomResourceDefinitions: defaults, validation and status of a CRD, and the kinds that a CRD
//! adds to the catalog.

mod approval;
mod conditions;
mod naming;
mod problems;
mod serving;
mod validation;
mod versions;

use std::sync::Arc;

use opkit_apimachinery::identity::compare_versions;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::{Column, CustomKind, Kind, ScalePaths, SchemaSource, Subresource, Verb};
use crate::object;

pub use problems::crd_problems;
pub(crate) use serving::{
    add_stored_version, set_default_stored_versions, set_instances_being_deleted, set_terminating,
};
pub(crate) use validation::{
    name_error, unrecognized_formats, validate, validate_status, validate_update,
};
pub(crate) use versions::Versions;

/// The verbs of a custom resource, in the order in which a real server lists them.
pub(crate) const VERBS: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The verbs of the subresources `status` and `scale` of custom resources.
pub(crate) const SUBRESOURCE_VERBS: [Verb; 3] = [Verb::Get, Verb::Patch, Verb::Update];

/// Returns the errors for which an API server refuses a new CRD, in Kubernetes' words and with the
/// paths of the fields in the CRD.
///
/// # Examples
/// ```
/// use serde_json::json;
///
/// let crd = json!({
///     "metadata": {"name": "robots.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"kind": "Robot", "plural": "robots"},
///         "scope": "Namespaced",
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
///             "openAPIV3Schema": {"type": "object", "properties": {"spec": {
///                 "type": "object",
///                 "properties": {"size": {"type": "integer", "default": "large"}},
///             }}},
///         }}],
///     },
/// });
/// let errors = opkit_apiserver::crd_errors(&crd);
/// assert!(errors[0].field.ends_with("properties[spec].properties[size].default"));
/// ```
pub fn crd_errors(crd: &Value) -> Vec<FieldError> {
    let mut crd = crd.clone();
    apply_defaults(&mut crd);
    set_initial_status(&mut crd);
    let mut errors: Vec<FieldError> = validation::name_error(&crd).into_iter().collect();
    errors.extend(validation::validate(&crd));
    errors
}

/// Sets the defaults of a CRD's fields.
pub(crate) fn apply_defaults(crd: &mut Value) {
    let kind = object::text(crd, &["spec", "names", "kind"]).to_owned();
    let mut default = |path: &[&str], value: Value| {
        if object::at(crd, path).is_null() {
            object::set(crd, path, value);
        }
    };
    if !kind.is_empty() {
        default(&["spec", "names", "listKind"], json!(format!("{kind}List")));
        default(&["spec", "names", "singular"], json!(kind.to_lowercase()));
    }
    default(&["spec", "conversion"], json!({"strategy": "None"}));
    let service = ["spec", "conversion", "webhook", "clientConfig", "service"];
    if object::at(crd, &service).is_object() {
        let port = [service.as_slice(), &["port"]].concat();
        if object::at(crd, &port).is_null() {
            object::set(crd, &port, json!(443));
        }
    }
}

/// Sets the status that a new CRD has.
pub(crate) fn set_initial_status(crd: &mut Value) {
    let stored: Vec<Value> = storage_version(crd).into_iter().collect();
    let status = json!({
        "acceptedNames": {"plural": "", "kind": ""},
        "conditions": null,
        "storedVersions": stored,
    });
    object::set_field(crd, "status", status);
}

/// Returns the name of the version in which the objects of a CRD are stored.
pub(crate) fn storage_version(crd: &Value) -> Option<Value> {
    let mut versions = object::items(crd, &["spec", "versions"]).iter();
    let storage = versions.find(|version| object::at(version, &["storage"]) == &json!(true));
    storage.map(|version| object::at(version, &["name"]).clone())
}

/// Returns the kind that one version of a CRD defines.
fn kind_of(crd: &Value, version: &Value, versions: &Arc<Versions>) -> Kind {
    let spec = object::at(crd, &["spec"]);
    let names = object::at(crd, &["status", "acceptedNames"]);
    let texts = |field: &str| -> Vec<String> {
        let items = object::items(names, &[field]).iter();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Kind {
        group: object::text(spec, &["group"]).to_owned(),
        version: object::text(version, &["name"]).to_owned(),
        kind: object::text(names, &["kind"]).to_owned(),
        plural: object::text(names, &["plural"]).to_owned(),
        singular: object::text(names, &["singular"]).to_owned(),
        short_names: texts("shortNames"),
        categories: texts("categories"),
        namespaced: object::text(spec, &["scope"]) == "Namespaced",
        verbs: VERBS.to_vec(),
        subresources: subresources(version),
        columns: columns(version),
        deprecation: deprecation(spec, version),
        schema: SchemaSource::Custom(Arc::new(
            object::at(version, &["schema", "openAPIV3Schema"]).clone(),
        )),
        custom: Some(Arc::new(CustomKind {
            versions: versions.clone(),
            list_kind: object::text(names, &["listKind"]).to_owned(),
            selectable_fields: selectable_fields(version),
        })),
    }
}

/// Returns the warning about a deprecated version of a CRD. Unless the CRD has a warning of its
/// own, the warning names the newest version that is served and not deprecated.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    if object::at(version, &["deprecated"]) != &json!(true) {
        return None;
    }
    let own = object::at(version, &["deprecationWarning"]).as_str();
    if let Some(own) = own {
        return Some(own.to_owned());
    }
    let (group, kind) = (
        object::text(spec, &["group"]),
        object::text(spec, &["names", "kind"]),
    );
    let name = object::text(version, &["name"]);
    let newer = object::items(spec, &["versions"])
        .iter()
        .filter(|other| {
            object::at(other, &["served"]) == &json!(true)
                && object::at(other, &["deprecated"]) != &json!(true)
        })
        .map(|other| object::text(other, &["name"]))
        .filter(|other| compare_versions(other, name).is_gt())
        .max_by(|one, other| compare_versions(one, other));
    let advice = newer.map(|newer| format!("; use {group}/{newer} {kind}"));
    let advice = advice.unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{advice}"))
}

/// Returns the names of the fields that field selectors can use.
fn selectable_fields(version: &Value) -> Vec<String> {
    let fields = object::items(version, &["selectableFields"]).iter();
    fields
        .map(|field| object::text(field, &["jsonPath"]))
        .map(|path| path.strip_prefix('.').unwrap_or(path).to_owned())
        .collect()
}

fn subresources(version: &Value) -> Vec<Subresource> {
    let declared = object::at(version, &["subresources"]);
    let mut found = Vec::new();
    if !object::at(declared, &["status"]).is_null() {
        found.push(Subresource {
            name: "status".to_owned(),
            verbs: SUBRESOURCE_VERBS.to_vec(),
            response: None,
            scale: None,
        });
    }
    let scale = object::at(declared, &["scale"]);
    if !scale.is_null() {
        let path = |field: &str| object::text(scale, &[field]).to_owned();
        found.push(Subresource {
            name: "scale".to_owned(),
            verbs: SUBRESOURCE_VERBS.to_vec(),
            response: Some((
                "autoscaling".to_owned(),
                "v1".to_owned(),
                "Scale".to_owned(),
            )),
            scale: Some(ScalePaths {
                spec_replicas: path("specReplicasPath"),
                status_replicas: path("statusReplicasPath"),
                // A custom resource without a path has no selector in its scale.
                label_selector: Some(path("labelSelectorPath")),
            }),
        });
    }
    found
}

fn columns(version: &Value) -> Vec<Column> {
    let declared = object::items(version, &["additionalPrinterColumns"]).iter();
    declared
        .map(|column| Column {
            name: object::text(column, &["name"]).to_owned(),
            type_: object::text(column, &["type"]).to_owned(),
            format: object::text(column, &["format"]).to_owned(),
            description: object::text(column, &["description"]).to_owned(),
            priority: i32::try_from(object::int(column, &["priority"])).unwrap_or_default(),
            cell: object::text(column, &["jsonPath"]).to_owned(),
        })
        .collect()
}
