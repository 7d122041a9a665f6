//! Lists of special rules for built-in kinds, which Kubernetes does not publish as data.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::Kind;
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
    ("jobs.batch", &["spec", "selector"]),
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

/// Types of secrets, and the keys that a secret of the type must have.
const SECRET_KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/basic-auth", &["username", "password"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
    (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Reports whether an update of an object of this kind must have a `metadata.resourceVersion`.
pub(super) fn needs_version(kind: &Kind) -> bool {
    kind.is_custom() || WITH_VERSION.contains(&kind.group_resource().as_str())
}

/// Workloads whose selector must match the labels of the workload's Pod template.
const SELECT_TEMPLATE: &[&str] = &[
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
];

pub(super) fn has_generation(kind: &Kind) -> bool {
    kind.is_custom() || WITH_GENERATION.contains(&kind.group_resource().as_str())
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

/// Returns an error for each key that the type of a secret requires and that the secret does not
/// have. A secret of type `kubernetes.io/basic-auth` needs only one of user name and password.
pub(super) fn missing_keys(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let type_ = object::text(object, &["type"]);
    let (_, keys) = match SECRET_KEYS.iter().find(|(of, _)| *of == type_) {
        Some(found) if kind.group.is_empty() && kind.plural == "secrets" => found,
        _ => return Vec::new(),
    };
    let is_missing = |key: &&&str| object::at(object, &["data", key]).is_null();
    let missing: Vec<&&str> = keys.iter().filter(is_missing).collect();
    if type_ == "kubernetes.io/basic-auth" && missing.len() < keys.len() {
        return Vec::new();
    }
    let errors = missing.iter();
    errors
        .map(|key| FieldError::required(format!("data[{key}]"), ""))
        .collect()
}

/// Returns an error for each key of a ConfigMap or Secret that is not a valid file name.
pub(super) fn bad_keys(kind: &Kind, object: &Value) -> Vec<FieldError> {
    if !holds_data(kind) {
        return Vec::new();
    }
    let keys = |field: &str| {
        object::at(object, &[field])
            .as_object()
            .into_iter()
            .flatten()
    };
    let mut errors = Vec::new();
    for (field, (key, _)) in ["data", "binaryData"]
        .into_iter()
        .flat_map(|field| keys(field).map(move |entry| (field, entry)))
    {
        let invalid =
            |detail: &str| FieldError::invalid(format!("{field}[{key}]"), &json!(key), detail);
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if key.len() > 253 {
            errors.push(invalid("must be no more than 253 characters"));
        }
        if key.is_empty() || !key.chars().all(is_part) {
            errors.push(invalid(CONFIG_KEY));
        } else if matches!(key.as_str(), "." | "..") {
            errors.push(invalid(&format!("must not be '{key}'")));
        } else if field == "data" && keys("binaryData").any(|(other, _)| other == key) {
            errors.push(invalid("duplicate of key present in binaryData"));
        }
    }
    errors
}

/// Returns an error if a workload has a negative number of replicas.
pub(super) fn negative_replicas(kind: &Kind, object: &Value) -> Option<FieldError> {
    let replicas = object::at(object, &["spec", "replicas"]);
    let is_workload = SELECT_TEMPLATE.contains(&kind.group_resource().as_str());
    (is_workload && replicas.as_i64().is_some_and(|replicas| replicas < 0)).then(|| {
        FieldError::invalid(
            "spec.replicas",
            replicas,
            "must be greater than or equal to 0",
        )
    })
}

/// Returns an error for each of `maxSurge` and `maxUnavailable` of a rolling update that is neither
/// an integer nor a percentage.
pub(super) fn bad_bounds(kind: &Kind, object: &Value) -> Vec<FieldError> {
    if kind.group_resource() != "deployments.apps" {
        return Vec::new();
    }
    ["maxUnavailable", "maxSurge"]
        .into_iter()
        .filter_map(|name| bad_bound(object, &["spec", "strategy", "rollingUpdate", name]))
        .collect()
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

/// Returns an error if the selector of a workload does not match the labels of its Pod template.
pub(super) fn mismatched_selector(kind: &Kind, object: &Value) -> Option<FieldError> {
    if !SELECT_TEMPLATE.contains(&kind.group_resource().as_str()) {
        return None;
    }
    let labels = object::at(object, &["spec", "template", "metadata", "labels"]);
    let selector = opkit_apimachinery::selector::LabelSelector::from_object(object::at(
        object,
        &["spec", "selector"],
    ));
    let matches = selector.is_ok_and(|selector| selector.matches(labels.as_object()));
    (!matches).then(|| {
        let detail = "`selector` does not match template `labels`";
        FieldError::invalid("spec.template.metadata.labels", labels, detail)
    })
}
