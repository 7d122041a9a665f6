//! CustomResourceDefinitions: defaults, validation and status of a CRD, and the kinds that a CRD
//! adds to the catalog.

mod validation;

use std::sync::Arc;

use opkit_apimachinery::identity::compare_versions;
use opkit_apimachinery::schema::Schema;
use serde_json::{Value, json};

use crate::kinds::{Column, Kind, ScalePaths, SchemaSource, Subresource, Verb};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::target::Target;

pub(crate) use validation::validate;

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

/// Sets the defaults of a CRD's fields.
pub(crate) fn apply_defaults(crd: &mut Value) {
    let kind = object::text(crd, &["spec", "names", "kind"]).to_owned();
    let mut default = |path: &[&str], value: Value| {
        if object::at(crd, path).is_null() {
            object::set(crd, path, value);
        }
    };
    default(&["spec", "names", "listKind"], json!(format!("{kind}List")));
    default(&["spec", "names", "singular"], json!(kind.to_lowercase()));
    default(&["spec", "conversion"], json!({"strategy": "None"}));
}

/// Sets the status that a new CRD has.
pub(crate) fn set_initial_status(crd: &mut Value) {
    let status = json!({
        "acceptedNames": {"plural": "", "kind": ""},
        "conditions": null,
        "storedVersions": storage_versions(crd),
    });
    object::set_field(crd, "status", status);
}

fn storage_versions(crd: &Value) -> Vec<Value> {
    object::items(crd, &["spec", "versions"])
        .iter()
        .filter(|version| object::at(version, &["storage"]) == &json!(true))
        .map(|version| object::at(version, &["name"]).clone())
        .collect()
}

impl Registry {
    /// Adds the kinds of a CRD to the catalog of served kinds, and sets the CRD's status
    /// accordingly.
    pub(crate) async fn establish(&self, crd: &Value) -> ApiResult<()> {
        let spec = object::at(crd, &["spec"]);
        let (mut served, mut rest) = (Vec::new(), None);
        for version in object::items(spec, &["versions"]) {
            let schema = object::at(version, &["schema", "openAPIV3Schema"]);
            let Ok(schema) = Schema::parse(schema) else {
                continue;
            };
            let kind = kind_of(spec, version);
            self.schemas.insert_custom(&kind, schema);
            if object::at(version, &["served"]) == &json!(true) {
                served.push(kind);
            } else {
                rest = Some(kind);
            }
        }
        let plural = object::text(spec, &["names", "plural"]);
        let group = object::text(spec, &["group"]);
        self.catalog.replace(group, plural, served, rest);
        let kind = self.builtin("apiextensions.k8s.io", "customresourcedefinitions")?;
        let target = Target::new(&kind, "", object::name(crd)).subresource("status");
        let now = self.clock.now_rfc3339();
        self.modify(&target, &mut Write::by("kube-apiserver"), |live| {
            let mut new = live.clone();
            set_status(&mut new, &now);
            Ok(new)
        })
        .await?;
        Ok(())
    }
}

/// Adds the condition `Terminating` to a CRD whose objects are about to be deleted, unless it has
/// the condition.
pub(crate) fn set_terminating(crd: &mut Value, now: &str) {
    let mut conditions = object::items(crd, &["status", "conditions"]).to_vec();
    let is_terminating = |condition: &Value| object::text(condition, &["type"]) == "Terminating";
    if conditions.iter().any(is_terminating) {
        return;
    }
    conditions.push(json!({
        "type": "Terminating", "status": "True", "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                    begin soon",
    }));
    object::set(crd, &["status", "conditions"], json!(conditions));
}

fn set_status(crd: &mut Value, now: &str) {
    let names = object::at(crd, &["spec", "names"]).clone();
    object::set(crd, &["status", "acceptedNames"], names);
    let mut stored: Vec<Value> = object::items(crd, &["status", "storedVersions"]).to_vec();
    for version in storage_versions(crd) {
        if !stored.contains(&version) {
            stored.push(version);
        }
    }
    object::set(crd, &["status", "storedVersions"], json!(stored));
    if object::items(crd, &["status", "conditions"]).is_empty() {
        let condition = |type_: &str, reason: &str, message: &str| {
            json!({
                "type": type_, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": now,
            })
        };
        let conditions = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            ),
        ]);
        object::set(crd, &["status", "conditions"], conditions);
    }
}

/// Returns the kind that one version of a CRD defines.
fn kind_of(spec: &Value, version: &Value) -> Kind {
    let names = object::at(spec, &["names"]);
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
