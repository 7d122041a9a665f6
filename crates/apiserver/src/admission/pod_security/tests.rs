use std::sync::Arc;

use serde_json::{Value, json};

use super::policy::{Level, LevelVersion, Policy, Version};
use super::{Outcome, Pod, check, check_namespace, details, evaluate};
use crate::kinds::{Catalog, Kind};

fn level(level: Level, version: Version) -> LevelVersion {
    LevelVersion { level, version }
}

/// Checks the violations of a level by the Pod with this spec.
fn violations(wanted: LevelVersion, spec: Value, expected: &str) {
    let found = evaluate(
        wanted,
        &Pod {
            metadata: &Value::Null,
            spec: &spec,
        },
    );
    assert_eq!(details(&found).unwrap_or_default(), expected, "{spec}");
}

const BASELINE: LevelVersion = LevelVersion {
    level: Level::Baseline,
    version: Version::Latest,
};
const RESTRICTED: LevelVersion = LevelVersion {
    level: Level::Restricted,
    version: Version::Latest,
};

/// Returns a container that satisfies the level `restricted`.
fn restricted_container() -> Value {
    json!({"name": "c", "securityContext": {
        "allowPrivilegeEscalation": false, "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    }})
}

#[test]
fn checks_of_proc_mounts_are_relaxed_for_pods_with_own_users() {
    let spec = |host_users: Value| {
        json!({"hostUsers": host_users, "containers": [
            {"name": "c", "securityContext": {"procMount": "Unmasked"}},
        ]})
    };
    let text = "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")";
    violations(BASELINE, spec(Value::Null), text);
    violations(BASELINE, spec(json!(false)), "");
    let older = level(Level::Baseline, Version::Minor(34));
    violations(older, spec(json!(false)), text);
    let mut container = restricted_container();
    container["securityContext"]["procMount"] = json!("Unmasked");
    let restricted = json!({"hostUsers": false, "containers": [container]});
    violations(RESTRICTED, restricted, text);
}

#[test]
fn a_newer_version_than_the_newest_is_the_newest() {
    let spec = json!({"containers": [{"name": "c", "livenessProbe": {"httpGet": {"host": "h"}}}]});
    let text = "probe or lifecycle host (container \"c\" uses probe or lifecycle host \"h\")";
    violations(
        level(Level::Baseline, Version::Minor(99)),
        spec.clone(),
        text,
    );
    violations(level(Level::Baseline, Version::Minor(33)), spec, "");
}

#[test]
fn newer_versions_allow_more_sysctls_and_types() {
    let spec = json!({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}});
    let at = |minor| level(Level::Baseline, Version::Minor(minor));
    violations(
        at(31),
        spec.clone(),
        "forbidden sysctls (net.ipv4.tcp_rmem)",
    );
    violations(at(32), spec, "");
    let spec = json!({"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}});
    let text = "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \
                \"container_engine_t\")";
    violations(at(30), spec.clone(), text);
    violations(at(31), spec, "");
}

#[test]
fn restricted_replaces_some_checks_of_baseline() {
    let mut container = restricted_container();
    container["securityContext"]["capabilities"]["add"] = json!(["CHOWN"]);
    let spec = json!({"containers": [container]});
    violations(BASELINE, spec.clone(), "");
    let text = "unrestricted capabilities (container \"c\" must not include \"CHOWN\" in \
                securityContext.capabilities.add)";
    violations(RESTRICTED, spec.clone(), text);
    // The check of capabilities is younger than the level.
    violations(level(Level::Restricted, Version::Minor(21)), spec, "");
    let host_path = json!({
        "containers": [restricted_container()],
        "volumes": [{"name": "v", "hostPath": {}}, {"name": "w"}],
    });
    let text = "restricted volume types (volumes \"v\", \"w\" use restricted volume types \
                \"hostPath\", \"unknown\")";
    violations(RESTRICTED, host_path, text);
}

#[test]
fn annotations_of_profiles_are_checked() {
    let metadata = json!({"annotations": {
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/d": "localhost/p",
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
    }});
    let spec = json!({"containers": [{"name": "c"}]});
    let pod = Pod {
        metadata: &metadata,
        spec: &spec,
    };
    let found = evaluate(level(Level::Baseline, Version::Minor(18)), &pod);
    let expected = "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
                    \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\"), \
                    seccompProfile (forbidden annotation \
                    seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")";
    assert_eq!(details(&found).unwrap(), expected);
}

#[test]
fn windows_pods_need_no_settings_of_linux() {
    let windows = json!({
        "os": {"name": "windows"}, "securityContext": {"runAsNonRoot": true},
        "containers": [{"name": "c"}],
    });
    violations(RESTRICTED, windows.clone(), "");
    let older = level(Level::Restricted, Version::Minor(24));
    let spec = evaluate(
        older,
        &Pod {
            metadata: &Value::Null,
            spec: &windows,
        },
    );
    let reasons: Vec<&str> = spec
        .iter()
        .map(|violation| violation.reason.as_str())
        .collect();
    let expected = [
        "allowPrivilegeEscalation != false",
        "unrestricted capabilities",
        "seccompProfile",
    ];
    assert_eq!(reasons, expected);
    let host_process = json!({"securityContext": {"windowsOptions": {"hostProcess": true}}});
    let text = "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)";
    violations(BASELINE, host_process, text);
}

fn policy(labels: Value) -> (Policy, usize) {
    let labels = labels.as_object().map(|labels| {
        let prefixed = labels.iter();
        let prefixed = prefixed
            .map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), value.clone()));
        prefixed.collect()
    });
    let (policy, errors) = Policy::of_labels(labels.as_ref());
    (policy, errors.len())
}

#[test]
fn a_namespace_warns_about_what_it_enforces() {
    let (enforced, errors) = policy(json!({"enforce": "baseline", "enforce-version": "v1.30"}));
    assert_eq!(errors, 0);
    let expected = level(Level::Baseline, Version::Minor(30));
    assert_eq!((enforced.enforce, enforced.warn), (expected, expected));
    assert_eq!(enforced.audit.level, Level::Privileged);
    let (own, _) = policy(json!({"enforce": "baseline", "warn": "privileged"}));
    assert_eq!(own.warn.level, Level::Privileged);
}

#[test]
fn labels_with_errors_are_strict_only_for_enforcement() {
    let (bad, errors) = policy(json!({
        "enforce": "x", "audit": "x", "warn": "x", "warn-version": "v2.0", "audit-version": "v1.01",
    }));
    assert_eq!(errors, 5);
    assert_eq!(bad.enforce, RESTRICTED);
    assert_eq!(bad.audit.level, Level::Privileged);
    assert_eq!(bad.warn, level(Level::Privileged, Version::Latest));
}

fn kind(group: &str, plural: &str) -> Arc<Kind> {
    Catalog::builtin().get(group, "v1", plural).unwrap()
}

fn outcome(labels: Value, kind: &Kind, object: &Value, old: Option<&Value>) -> Outcome {
    let namespace = json!({"metadata": {"labels": labels}});
    check(kind, "", &namespace, object, old)
}

#[test]
fn a_refused_pod_has_no_warning_but_audit_annotations() {
    let labels = || {
        json!({
            "pod-security.kubernetes.io/enforce": "baseline",
            "pod-security.kubernetes.io/audit": "restricted",
        })
    };
    let pod = json!({"spec": {"hostPID": true, "containers": []}});
    let found = outcome(labels(), &kind("", "pods"), &pod, None);
    let text = "PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    assert_eq!(found.forbidden, Some(format!("violates {text}")));
    assert_eq!(found.warnings, Vec::<String>::new());
    let expected = [
        (
            "pod-security.kubernetes.io/enforce-policy",
            "baseline:latest",
        ),
        (
            "pod-security.kubernetes.io/audit-violations",
            "would violate PodSecurity \"restricted:latest\": host namespaces (hostPID=true)",
        ),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(found.annotations, expected);
    let template = json!({"spec": {"template": {"spec": {"hostPID": true, "containers": []}}}});
    let found = outcome(labels(), &kind("apps", "deployments"), &template, None);
    assert_eq!(found.forbidden, None);
    assert_eq!(found.warnings, [format!("would violate {text}")]);
}

#[test]
fn an_update_is_checked_if_it_changes_an_image() {
    let labels = || json!({"pod-security.kubernetes.io/enforce": "baseline"});
    let pods = kind("", "pods");
    let pod = |image: &str| json!({"spec": {"hostPID": true, "containers": [{"name": "c", "image": image}]}});
    let same = outcome(labels(), &pods, &pod("a"), Some(&pod("a")));
    assert_eq!(same, Outcome::default());
    let other = outcome(labels(), &pods, &pod("b"), Some(&pod("a")));
    assert!(other.forbidden.is_some());
    let mut debugged = pod("a");
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "a"}]);
    let added = outcome(labels(), &pods, &debugged, Some(&pod("a")));
    assert!(added.forbidden.is_some());
    let again = outcome(labels(), &pods, &debugged, Some(&debugged));
    assert_eq!(again, Outcome::default());
}

#[test]
fn a_stricter_level_warns_about_the_pods_of_a_namespace() {
    let namespace = |enforce: &str| {
        let labels = json!({"pod-security.kubernetes.io/enforce": enforce});
        json!({"metadata": {"name": "n", "labels": labels}})
    };
    let pod = |name: &str, spec: Value| Arc::new(json!({"metadata": {"name": name}, "spec": spec}));
    let pods = || {
        vec![
            pod("z", json!({"hostPID": true})),
            pod("b", json!({"hostPID": true})),
            pod("good", json!({})),
            pod(
                "a",
                json!({"hostIPC": true, "volumes": [{"name": "v", "hostPath": {}}]}),
            ),
        ]
    };
    let warnings = |old: &str, new: &str| {
        check_namespace(&namespace(new), Some(&namespace(old)), pods).unwrap()
    };
    let expected = [
        "existing pods in namespace \"n\" violate the new PodSecurity enforce level \
         \"baseline:latest\"",
        "a: host namespaces, hostPath volumes",
        "b (and 1 other pod): host namespaces",
    ];
    assert_eq!(warnings("privileged", "baseline"), expected);
    assert_eq!(warnings("restricted", "baseline"), Vec::<String>::new());
    assert_eq!(warnings("baseline", "privileged"), Vec::<String>::new());
    let errors = check_namespace(&namespace("x"), Some(&namespace("y")), pods).unwrap_err();
    assert_eq!(errors.len(), 1);
    // An error that was there before does not block other changes.
    assert!(check_namespace(&namespace("x"), Some(&namespace("x")), pods).is_ok());
}
