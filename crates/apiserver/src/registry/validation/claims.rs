//! Validation of PersistentVolumeClaims and of templates for them.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{format, resources, selectors};
use crate::object;

pub(super) const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];
/// Fields of the metadata of a claim in a template.
const TEMPLATE_METADATA: &[&str] = &["annotations", "labels"];
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Adds the errors in a claim.
pub(super) fn claim(object: &Field<'_>, errors: &mut Errors) {
    spec(&object.get("spec"), errors);
}

/// Adds the errors in the access modes of a claim or volume.
pub(super) fn access_modes(modes: &Field<'_>, errors: &mut Errors) {
    for mode in modes.items() {
        errors.supported(&mode.renamed(modes.path.clone()), ACCESS_MODES);
    }
    let is_single = |mode: &Field<'_>| mode.text() == "ReadWriteOncePod";
    let mut others = modes.items().filter(|mode| !is_single(mode));
    if modes.items().any(|mode| is_single(&mode)) && others.any(|m| m.is_one_of(ACCESS_MODES)) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.forbidden(modes, detail);
    }
}

/// Adds the errors in the spec of a claim.
pub(super) fn spec(spec: &Field<'_>, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        errors.required(&modes, "at least 1 access mode is required");
    }
    selectors::selector(&spec.get("selector"), errors);
    access_modes(&modes, errors);
    let storage = spec.at(&["resources", "requests", "storage"]);
    let storage = storage.renamed(spec.get("resources").key("storage"));
    if !storage.is_set() {
        errors.required(&storage, "");
    } else {
        resources::positive(&storage, errors);
    }
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        errors.rules(&class, format::dns_subdomain(class.text()));
    }
    errors.supported_if_set(&spec.get("volumeMode"), VOLUME_MODES);
    data_sources(spec, errors);
    let class = spec.get("volumeAttributesClassName");
    if !class.is_empty() {
        errors.rules(&class, format::dns_subdomain(class.text()));
    }
}

fn data_sources(spec: &Field<'_>, errors: &mut Errors) {
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for field in [&source, &reference].into_iter().filter(|f| f.is_set()) {
        errors.not_empty(&field.get("name"));
        errors.not_empty(&field.get("kind"));
        let (group, kind) = (field.get("apiGroup"), field.get("kind").text());
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.invalid_value(&field.path, json!(kind), detail);
        }
        if !group.is_empty() {
            errors.rules(&group, format::dns_subdomain(group.text()));
        }
    }
    let namespace = reference.get("namespace");
    if !namespace.is_empty() {
        errors.rules(&namespace, format::dns_label(namespace.text()));
    }
    let differs = |name: &str| source.get(name).value != reference.get(name).value;
    // Kubernetes passes a path where it should pass the value, which is printed as an empty object.
    if source.is_set() && !namespace.is_empty() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        errors.invalid_value(&spec.path, json!({}), detail);
    } else if source.is_set()
        && reference.is_set()
        && ["apiGroup", "kind", "name"]
            .iter()
            .any(|name| differs(name))
    {
        errors.invalid_value(&spec.path, json!({}), "must match dataSourceRef");
    }
}

/// Adds the errors in the template of the claim of an ephemeral volume.
pub(super) fn template(template: &Field<'_>, errors: &mut Errors) {
    let metadata = template.get("metadata");
    selectors::annotations(&metadata.get("annotations"), errors);
    selectors::labels(&metadata.get("labels"), errors);
    for (name, _) in metadata.entries() {
        if !TEMPLATE_METADATA.contains(&name) {
            errors.forbidden(&metadata.get(name), "cannot be set");
        }
    }
    spec(&template.get("spec"), errors);
}

/// Adds the errors in the change of a claim. Only the size of a bound claim, and its class of
/// attributes, can change.
pub(super) fn claim_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let (mut before, mut after) = (
        live.get("spec").value.clone(),
        new.get("spec").value.clone(),
    );
    let is_bound = new.at(&["status", "phase"]).text() == "Bound";
    let mut keep = |path: &[&str]| {
        let value = object::at(&before, path).clone();
        object::set(&mut after, path, value);
    };
    if is_bound {
        keep(&["resources", "requests", "storage"]);
        keep(&["volumeAttributesClassName"]);
    }
    if live.at(&["spec", "storageClassName"]).value.is_null() {
        keep(&["storageClassName"]);
    }
    if object::text(&before, &["volumeName"]).is_empty() {
        let name = object::at(&after, &["volumeName"]).clone();
        object::set(&mut before, &["volumeName"], name);
    }
    let class = |claim: &Field<'_>| {
        let annotations = claim.at(&["metadata", "annotations"]);
        annotations.get(STORAGE_CLASS).text().to_owned()
    };
    if class(live) != class(new) {
        let path = format!("metadata.annotations.{STORAGE_CLASS}");
        errors.invalid_value(path, json!(class(new)), "field is immutable");
    }
    if before != after {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims\n";
        let detail = format!("{detail}{}", difference(&before, &after));
        errors.0.push(FieldError::forbidden("spec", detail));
    }
    let storage = |claim: &Field<'_>| {
        resources::quantity(&claim.at(&["spec", "resources", "requests", "storage"]))
    };
    let capacity = resources::quantity(&live.at(&["status", "capacity", "storage"]));
    if storage(new) < storage(live) && storage(new) <= capacity {
        let path = "spec.resources.requests.storage";
        let detail = "field can not be less than status.capacity";
        errors.0.push(FieldError::forbidden(path, detail));
    }
    let mode = new.at(&["spec", "volumeMode"]);
    errors.immutable(
        &mode.renamed("volumeMode"),
        live.at(&["spec", "volumeMode"]).value,
    );
}

/// Prints the change of a spec as Kubernetes prints that of its internal type: all fields in the
/// order of the Go struct.
fn difference(before: &Value, after: &Value) -> String {
    super::difference::unified(&printed(before), &printed(after))
}

fn printed(spec: &Value) -> String {
    let fields = [
        ("AccessModes", "accessModes"),
        ("Selector", "selector"),
        ("Resources", "resources"),
        ("VolumeName", "volumeName"),
        ("StorageClassName", "storageClassName"),
        ("VolumeMode", "volumeMode"),
        ("DataSource", "dataSource"),
        ("DataSourceRef", "dataSourceRef"),
        ("VolumeAttributesClassName", "volumeAttributesClassName"),
    ];
    let fields = fields.map(|(name, field)| {
        let value = object::at(spec, &[field]);
        let printed = match field {
            "resources" => {
                let of = |name: &str| indented(object::at(value, &[name]), 2);
                format!(
                    "{{\n  \"Limits\": {},\n  \"Requests\": {}\n }}",
                    of("limits"),
                    of("requests")
                )
            }
            "volumeName" => json!(value.as_str().unwrap_or_default()).to_string(),
            _ => indented(value, 1),
        };
        format!(" \"{name}\": {printed}")
    });
    format!("{{\n{}\n}}", fields.join(",\n"))
}

/// Prints a value as JSON with one space for each level, inside of `depth` levels.
fn indented(value: &Value, depth: usize) -> String {
    let (outer, inner) = (" ".repeat(depth), " ".repeat(depth + 1));
    let lines = |open: char, lines: Vec<String>, close: char| {
        format!("{open}\n{}\n{outer}{close}", lines.join(",\n"))
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            let items = items
                .iter()
                .map(|item| format!("{inner}{}", indented(item, depth + 1)));
            lines('[', items.collect(), ']')
        }
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(name, value)| {
                format!("{inner}{}: {}", json!(name), indented(value, depth + 1))
            });
            lines('{', fields.collect(), '}')
        }
        value => value.to_string(),
    }
}
