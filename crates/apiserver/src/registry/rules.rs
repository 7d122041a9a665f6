//! Lists of special rules for built-in kinds, which Kubernetes does not publish as data.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::{Kind, defaults};
use crate::object;
use crate::target::Target;

/// Built-in resources that have a `metadata.generation`. All custom resources have one.
const WITH_GENERATION: &[&str] = &[
    "cronjobs.batch",
    "csidrivers.storage.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "daemonsets.apps",
    "deployments.apps",
    "deviceclasses.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "endpointslices.discovery.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "ingressclasses.networking.k8s.io",
    "ingresses.networking.k8s.io",
    "jobs.batch",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "pods",
    "podtemplates",
    "priorityclasses.scheduling.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "replicasets.apps",
    "replicationcontrollers",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "statefulsets.apps",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
];

/// Built-in resources whose updates must have a `metadata.resourceVersion`. Those of custom
/// resources must have one, too.
const WITH_VERSION: &[&str] = &[
    "apiservices.apiregistration.k8s.io",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "leases.coordination.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "poddisruptionbudgets.policy",
    "runtimeclasses.node.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "volumeattachments.storage.k8s.io",
];

/// Resources for which the response to a delete is the deleted object, and not a `Status`.
const RETURN_DELETED: &[&str] = &[
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "deviceclasses.resource.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "resourcequotas",
    "resourceslices.resource.k8s.io",
    "serviceaccounts",
    "services",
    "storageclasses.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
];

/// Immutable fields of built-in kinds.
const IMMUTABLE: &[(&str, &[&str])] = &[
    ("daemonsets.apps", &["spec", "selector"]),
    ("deployments.apps", &["spec", "selector"]),
    ("replicasets.apps", &["spec", "selector"]),
    ("secrets", &["type"]),
];

/// Fields that no field manager owns if they are empty when the object is created.
const UNATTRIBUTED_EMPTY: &[(&str, &[&str])] = &[
    ("events", &["reportingComponent"]),
    ("events", &["reportingInstance"]),
];

/// Resources for which a PUT of an object that does not exist creates the object.
const CREATED_BY_UPDATE: &[&str] = &[
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "endpoints",
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "limitranges",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "services",
];

/// Resources whose names must be DNS labels.
const NAMED_AS_LABELS: &[&str] = &["namespaces", "services", "statefulsets.apps"];

/// The fields in the spec of a StatefulSet that can change.
const STATEFUL_SET_MUTABLE: &[&str] = &[
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
];
const SET_FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
    'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
    'minReadySeconds' are forbidden";

/// Reports whether an update of an object of this kind must have a `metadata.resourceVersion`.
pub(super) fn needs_version(kind: &Kind) -> bool {
    kind.is_custom() || WITH_VERSION.contains(&kind.group_resource().as_str())
}

pub(super) fn has_generation(kind: &Kind) -> bool {
    kind.is_custom() || WITH_GENERATION.contains(&kind.group_resource().as_str())
}

/// Reports whether a new object of the kind has a generation. That of a CSIDriver is set by its
/// first change.
pub(super) fn has_initial_generation(kind: &Kind) -> bool {
    has_generation(kind) && kind.group_resource() != "csidrivers.storage.k8s.io"
}

/// Sets the fields of a new object that the server generates, and that no field manager owns.
pub(super) fn set_initial_fields(kind: &Kind, object: &mut Value, now: &str) {
    defaults::generate(kind, object);
    match kind.group_resource().as_str() {
        "persistentvolumes" => {
            object::set(object, &["status", "lastPhaseTransitionTime"], json!(now));
        }
        "persistentvolumeclaims" => copy_data_source(object),
        _ => {}
    }
}

/// Copies the data source of a new claim to the newer field for it, or the reverse. A data source
/// that is neither a claim nor a snapshot is removed from the older field.
fn copy_data_source(claim: &mut Value) {
    let (old, new) = (["spec", "dataSource"], ["spec", "dataSourceRef"]);
    let kind = |claim: &Value, path: &[&str]| {
        let source = object::at(claim, path);
        let (group, kind) = (
            object::text(source, &["apiGroup"]),
            object::text(source, &["kind"]),
        );
        (group.to_owned(), kind.to_owned())
    };
    let is_known = |(group, kind): (String, String)| {
        matches!(
            (group.as_str(), kind.as_str()),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    };
    if !object::at(claim, &old).is_null() && !is_known(kind(claim, &old)) {
        object::set(claim, &old, Value::Null);
    }
    let has_namespace = !object::text(claim, &["spec", "dataSourceRef", "namespace"]).is_empty();
    let copied = match (
        object::at(claim, &old).is_null(),
        object::at(claim, &new).is_null(),
    ) {
        (false, true) => Some((old, new)),
        (true, false) if !has_namespace && is_known(kind(claim, &new)) => Some((new, old)),
        _ => None,
    };
    if let Some((from, to)) = copied {
        let mut source = object::at(claim, &from).clone();
        let group = object::at(&source, &["apiGroup"]).clone();
        object::set_field(&mut source, "apiGroup", group);
        object::set(claim, &to, source);
    }
}

pub(super) fn returns_deleted_object(kind: &Kind) -> bool {
    RETURN_DELETED.contains(&kind.group_resource().as_str())
}

/// Reports whether objects of the kind have a grace period: only pods have one.
pub(super) fn deletes_gracefully(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "pods"
}

pub(super) fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "namespaces"
}

pub(super) fn is_crd(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// Reports whether Kubernetes records the field managers of a kind: it does for all kinds except
/// CertificateSigningRequests.
pub(super) fn has_managed_fields(kind: &Kind) -> bool {
    kind.group_resource() != "certificatesigningrequests.certificates.k8s.io"
}

pub(super) fn is_created_by_update(kind: &Kind) -> bool {
    CREATED_BY_UPDATE.contains(&kind.group_resource().as_str())
}

pub(super) fn is_named_as_label(kind: &Kind) -> bool {
    NAMED_AS_LABELS.contains(&kind.group_resource().as_str())
}

/// Removes and returns the fields of `new` that the field manager of this write does not own, such
/// as fields that the server sets. The caller restores the fields after it has computed
/// `managedFields`.
pub(super) fn set_aside(
    target: &Target,
    live: Option<&Value>,
    new: &mut Value,
) -> Vec<(&'static [&'static str], Value)> {
    let kind = &target.kind;
    let resource = kind.group_resource();
    let mut paths: Vec<&'static [&'static str]> = Vec::new();
    if live.is_none() {
        let empty = UNATTRIBUTED_EMPTY
            .iter()
            .filter(|(of, path)| *of == resource && object::text(new, path).is_empty());
        paths.extend(empty.map(|(_, path)| *path));
        if kind.subresource("status").is_some() {
            paths.push(&["status"]);
        }
    }
    let taken = paths.into_iter().map(|path| {
        let value = object::at(new, path).clone();
        object::set(new, path, Value::Null);
        (path, value)
    });
    taken.filter(|(_, value)| !value.is_null()).collect()
}

/// Returns an error for each immutable field that differs between `live` and `new`.
pub(super) fn immutable_changes(kind: &Kind, live: &Value, new: &Value) -> Vec<FieldError> {
    let resource = kind.group_resource();
    IMMUTABLE
        .iter()
        .filter(|(of, path)| *of == resource && object::at(live, path) != object::at(new, path))
        .map(|(_, path)| {
            FieldError::invalid(path.join("."), object::at(new, path), "field is immutable")
        })
        .chain(sealed_changes(kind, live, new))
        .chain(stateful_set_changes(kind, live, new))
        .collect()
}

/// Returns an error for each changed field of a ConfigMap or Secret with `immutable: true`.
fn sealed_changes(kind: &Kind, live: &Value, new: &Value) -> Vec<FieldError> {
    let is_sealed = object::at(live, &["immutable"]) == &json!(true);
    if !holds_data(kind) || !is_sealed {
        return Vec::new();
    }
    ["immutable", "data", "binaryData"]
        .into_iter()
        .filter(|field| object::at(live, &[field]) != object::at(new, &[field]))
        .map(|field| FieldError::forbidden(field, "field is immutable when `immutable` is set"))
        .collect()
}

/// Returns an error if the spec of a StatefulSet changes outside of the mutable fields.
fn stateful_set_changes(kind: &Kind, live: &Value, new: &Value) -> Option<FieldError> {
    if kind.group_resource() != "statefulsets.apps" {
        return None;
    }
    let fixed = |object: &Value| {
        let mut spec = object::at(object, &["spec"]).as_object().cloned();
        let fields = spec.iter_mut();
        fields.for_each(|spec| {
            spec.retain(|field, _| !STATEFUL_SET_MUTABLE.contains(&field.as_str()))
        });
        spec
    };
    (fixed(live) != fixed(new)).then(|| FieldError::forbidden("spec", SET_FIXED))
}

/// Sets the annotation of a DaemonSet that counts the changes of its Pod template.
pub(super) fn count_template_changes(kind: &Kind, live: &Value, new: &mut Value) {
    const ANNOTATION: [&str; 3] = [
        "metadata",
        "annotations",
        "deprecated.daemonset.template.generation",
    ];
    if kind.group_resource() != "daemonsets.apps" {
        return;
    }
    let count: u64 = object::text(live, &ANNOTATION).parse().unwrap_or_default();
    let template = |object: &Value| object::at(object, &["spec", "template"]).clone();
    let changes = u64::from(template(live) != template(new));
    let count = json!(count.saturating_add(changes).to_string());
    object::set(new, &ANNOTATION, count);
}

fn holds_data(kind: &Kind) -> bool {
    kind.group.is_empty() && matches!(kind.plural.as_str(), "configmaps" | "secrets")
}

/// Returns an error if the field at a path is neither missing, an integer from 0, nor a percentage.
pub(super) fn bad_bound(object: &Value, path: &[&str]) -> Option<FieldError> {
    let value = object::at(object, path);
    let detail = match value {
        Value::Null => return None,
        Value::String(text) => match text.strip_suffix('%').map(str::parse::<u32>) {
            Some(Ok(_)) => return None,
            _ => {
                "a valid percent string must be a numeric string followed by an ending '%' \
                 (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            }
        },
        value
            if value
                .as_i64()
                .is_some_and(|n| (0..=i64::from(i32::MAX)).contains(&n)) =>
        {
            return None;
        }
        _ => "must be greater than or equal to 0",
    };
    Some(FieldError::invalid(path.join("."), value, detail))
}
