//! The checks of the level `restricted`.

use serde_json::Value;

use super::baseline::{self, has_bad_seccomp};
use super::{
    Pod, Violation, bad_containers, containers, has_own_users, is_windows, named, plural, quoted,
    security, setters, sorted,
};
use crate::object;

/// The types of volumes that a Pod may use.
const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The types of volumes that a Pod may not use.
const FORBIDDEN_VOLUMES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    let field = ["allowPrivilegeEscalation"];
    let bad = bad_containers(pod, |container| {
        security(container, &field) != &Value::Bool(false)
    });
    if bad.is_empty() {
        return None;
    }
    Violation::new(
        "allowPrivilegeEscalation != false",
        format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            named(&bad)
        ),
    )
}

pub(super) fn privilege_escalation_1_25(pod: &Pod<'_>) -> Option<Violation> {
    match is_windows(pod) {
        true => None,
        false => privilege_escalation(pod),
    }
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    fn added(container: &Value) -> impl Iterator<Item = &str> {
        let added = security(container, &["capabilities", "add"]).as_array();
        let added = added.into_iter().flatten().filter_map(Value::as_str);
        added.filter(|capability| *capability != "NET_BIND_SERVICE")
    }
    let keeps_some = bad_containers(pod, |container| {
        let dropped = security(container, &["capabilities", "drop"]).as_array();
        !dropped
            .into_iter()
            .flatten()
            .any(|dropped| dropped == "ALL")
    });
    let adds_some = bad_containers(pod, |container| added(container).next().is_some());
    let mut details = Vec::new();
    if !keeps_some.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            named(&keeps_some)
        ));
    }
    if !adds_some.is_empty() {
        let forbidden = sorted(containers(pod).flat_map(added));
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&adds_some),
            quoted(forbidden)
        ));
    }
    match details.is_empty() {
        true => None,
        false => Violation::new("unrestricted capabilities", details.join("; ")),
    }
}

pub(super) fn capabilities_1_25(pod: &Pod<'_>) -> Option<Violation> {
    match is_windows(pod) {
        true => None,
        false => capabilities(pod),
    }
}

pub(super) fn volumes(pod: &Pod<'_>) -> Option<Violation> {
    let has = |volume: &Value, types: &[&'static str]| {
        let mut types = types.iter();
        types
            .find(|type_| !object::at(volume, &[type_]).is_null())
            .copied()
    };
    let volumes = object::items(pod.spec, &["volumes"]).iter();
    let bad: Vec<&Value> = volumes
        .filter(|volume| has(volume, VOLUMES).is_none())
        .collect();
    if bad.is_empty() {
        return None;
    }
    let types = bad
        .iter()
        .map(|volume| has(volume, FORBIDDEN_VOLUMES).unwrap_or("unknown"));
    let types = sorted(types);
    let names = bad.iter().map(|volume| object::text(volume, &["name"]));
    Violation::new(
        "restricted volume types",
        format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", bad.len()),
            quoted(names),
            plural("uses", "use", bad.len()),
            plural(
                "restricted volume type",
                "restricted volume types",
                types.len()
            ),
            quoted(types)
        ),
    )
}

pub(super) fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let own = |spec: &Value| security(spec, &["runAsNonRoot"]).as_bool();
    let bad = bad_containers(pod, |container| own(container) == Some(false));
    let subjects = setters(own(pod.spec) == Some(false), &bad);
    if !subjects.is_empty() {
        let detail = format!("{subjects} must not set securityContext.runAsNonRoot=false");
        return Violation::new(REASON, detail);
    }
    let unset = bad_containers(pod, |container| own(container).is_none());
    if own(pod.spec) == Some(true) || unset.is_empty() {
        return None;
    }
    Violation::new(
        REASON,
        format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            named(&unset)
        ),
    )
}

pub(super) fn run_as_non_root_1_35(pod: &Pod<'_>) -> Option<Violation> {
    match has_own_users(pod) {
        true => None,
        false => run_as_non_root(pod),
    }
}

pub(super) fn run_as_user(pod: &Pod<'_>) -> Option<Violation> {
    let is_root = |spec: &Value| security(spec, &["runAsUser"]).as_i64() == Some(0);
    let subjects = setters(is_root(pod.spec), &bad_containers(pod, is_root));
    match subjects.is_empty() {
        true => None,
        false => Violation::new(
            "runAsUser=0",
            format!("{subjects} must not set runAsUser=0"),
        ),
    }
}

pub(super) fn run_as_user_1_35(pod: &Pod<'_>) -> Option<Violation> {
    match has_own_users(pod) {
        true => None,
        false => run_as_user(pod),
    }
}

pub(super) fn seccomp_profile(pod: &Pod<'_>) -> Option<Violation> {
    let violation = baseline::seccomp_profile(pod);
    if violation.is_some() {
        return violation;
    }
    let is_unset = |spec: &Value| security(spec, &["seccompProfile"]).is_null();
    let unset = bad_containers(pod, is_unset);
    let is_pod_set = !is_unset(pod.spec) && !has_bad_seccomp(pod.spec);
    if is_pod_set || unset.is_empty() {
        return None;
    }
    Violation::new(
        "seccompProfile",
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\"",
            named(&unset)
        ),
    )
}

pub(super) fn seccomp_profile_1_25(pod: &Pod<'_>) -> Option<Violation> {
    match is_windows(pod) {
        true => None,
        false => seccomp_profile(pod),
    }
}
