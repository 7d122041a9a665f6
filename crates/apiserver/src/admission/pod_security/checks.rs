//! The checks of the Pod Security Standards, each with the versions of Kubernetes that changed it.

mod baseline;
mod restricted;

use std::collections::BTreeSet;

use serde_json::Value;

use super::policy::{Level, LevelVersion, Version};
use crate::object;

/// A Pod, or the Pod of a template.
#[derive(Clone, Copy, Debug)]
pub(in crate::admission) struct Pod<'a> {
    pub(in crate::admission) metadata: &'a Value,
    pub(in crate::admission) spec: &'a Value,
}

/// A violation of a check.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::admission) struct Violation {
    pub(in crate::admission) reason: String,
    pub(in crate::admission) detail: String,
}

impl Violation {
    fn new(reason: &str, detail: String) -> Option<Self> {
        Some(Self {
            reason: reason.to_owned(),
            detail,
        })
    }
}

/// A function of a check, which returns the violation by a Pod.
type CheckPod = fn(&Pod<'_>) -> Option<Violation>;

/// A check of a level.
struct Check {
    id: &'static str,
    level: Level,
    /// The revisions of the check, from the oldest to the newest: the minor version of Kubernetes
    /// that introduced the revision, and the function.
    revisions: &'static [(u32, CheckPod)],
    /// The check of the level `baseline` that this check replaces.
    replaces: &'static str,
}

impl Check {
    const fn baseline(id: &'static str, revisions: &'static [(u32, CheckPod)]) -> Self {
        Self {
            id,
            level: Level::Baseline,
            revisions,
            replaces: "",
        }
    }

    const fn restricted(
        id: &'static str,
        revisions: &'static [(u32, CheckPod)],
        replaces: &'static str,
    ) -> Self {
        Self {
            id,
            level: Level::Restricted,
            revisions,
            replaces,
        }
    }

    /// Returns the function of the check in this minor version, if the version has the check.
    fn at(&self, minor: u32) -> Option<CheckPod> {
        let revisions = self.revisions.iter().rev();
        let mut known = revisions.filter(|(since, _)| *since <= minor);
        known.next().map(|(_, check)| *check)
    }
}

/// The minor version that changed the checks last.
const NEWEST: u32 = 35;

/// All checks, in the order of their violations in messages.
const CHECKS: &[Check] = &[
    Check::baseline("appArmorProfile", &[(0, baseline::app_armor_profile)]),
    Check::baseline("capabilities_baseline", &[(0, baseline::capabilities)]),
    Check::baseline("hostNamespaces", &[(0, baseline::host_namespaces)]),
    Check::baseline("hostPathVolumes", &[(0, baseline::host_path_volumes)]),
    Check::baseline("hostPorts", &[(0, baseline::host_ports)]),
    Check::baseline("hostProbesAndHostLifecycle", &[(34, baseline::probe_hosts)]),
    Check::baseline("privileged", &[(0, baseline::privileged)]),
    Check::baseline(
        "procMount",
        &[
            (0, baseline::proc_mount),
            (35, baseline::proc_mount_of_host_users),
        ],
    ),
    Check::baseline(
        "seLinuxOptions",
        &[
            (0, baseline::se_linux_options),
            (31, baseline::se_linux_options_1_31),
        ],
    ),
    Check::baseline(
        "seccompProfile_baseline",
        &[
            (0, baseline::seccomp_annotations),
            (19, baseline::seccomp_profile),
        ],
    ),
    Check::baseline(
        "sysctls",
        &[
            (0, baseline::sysctls),
            (27, baseline::sysctls_1_27),
            (29, baseline::sysctls_1_29),
            (32, baseline::sysctls_1_32),
        ],
    ),
    Check::baseline("windowsHostProcess", &[(0, baseline::host_process)]),
    Check::restricted(
        "allowPrivilegeEscalation",
        &[
            (8, restricted::privilege_escalation),
            (25, restricted::privilege_escalation_1_25),
        ],
        "",
    ),
    Check::restricted(
        "capabilities_restricted",
        &[
            (22, restricted::capabilities),
            (25, restricted::capabilities_1_25),
        ],
        "capabilities_baseline",
    ),
    Check::restricted(
        "procMount_restricted",
        &[(35, baseline::proc_mount)],
        "procMount",
    ),
    Check::restricted(
        "restrictedVolumes",
        &[(0, restricted::volumes)],
        "hostPathVolumes",
    ),
    Check::restricted(
        "runAsNonRoot",
        &[
            (0, restricted::run_as_non_root),
            (35, restricted::run_as_non_root_1_35),
        ],
        "",
    ),
    Check::restricted(
        "runAsUser",
        &[
            (23, restricted::run_as_user),
            (35, restricted::run_as_user_1_35),
        ],
        "",
    ),
    Check::restricted(
        "seccompProfile_restricted",
        &[
            (19, restricted::seccomp_profile),
            (25, restricted::seccomp_profile_1_25),
        ],
        "seccompProfile_baseline",
    ),
];

/// Returns the violations of a level by a Pod.
pub(in crate::admission) fn evaluate(wanted: LevelVersion, pod: &Pod<'_>) -> Vec<Violation> {
    let minor = match wanted.version {
        Version::Minor(minor) => minor.min(NEWEST),
        Version::Latest => NEWEST,
    };
    let used = CHECKS.iter().filter(|check| check.level <= wanted.level);
    let used: Vec<_> = used
        .filter_map(|check| Some((check, check.at(minor)?)))
        .collect();
    let is_replaced = |id: &str| used.iter().any(|(check, _)| check.replaces == id);
    used.iter()
        .filter(|(check, _)| !is_replaced(check.id))
        .filter_map(|(_, function)| function(pod))
        .collect()
}

/// Returns all containers: init containers first, then containers, then ephemeral containers.
fn containers<'a>(pod: &Pod<'a>) -> impl Iterator<Item = &'a Value> {
    let spec = pod.spec;
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |list| object::items(spec, &[list]))
}

/// Returns the names of the containers for which `is_bad` holds.
fn bad_containers<'a>(pod: &Pod<'a>, is_bad: impl Fn(&Value) -> bool) -> Vec<&'a str> {
    containers(pod)
        .filter(|container| is_bad(container))
        .map(|container| object::text(container, &["name"]))
        .collect()
}

/// Returns a field of the security context of a Pod's spec or of a container.
fn security<'a>(spec: &'a Value, path: &[&str]) -> &'a Value {
    object::at(object::at(spec, &["securityContext"]), path)
}

fn plural<'a>(singular: &'a str, plural: &'a str, count: usize) -> &'a str {
    match count {
        1 => singular,
        _ => plural,
    }
}

/// Returns the items in quotation marks.
fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|item| format!("\"{item}\""))
        .collect();
    items.join(", ")
}

/// Returns the names of containers, with the word `container` or `containers` before them.
fn named(containers: &[&str]) -> String {
    let noun = plural("container", "containers", containers.len());
    format!("{noun} {}", quoted(containers.iter().copied()))
}

/// Returns `pod`, the names of the containers, or both, as the subject of a message. Returns an
/// empty text if there is neither.
fn setters(is_pod: bool, containers: &[&str]) -> String {
    let pod = is_pod.then(|| "pod".to_owned());
    let containers = (!containers.is_empty()).then(|| named(containers));
    let parts: Vec<String> = pod.into_iter().chain(containers).collect();
    parts.join(" and ")
}

/// Returns the texts without duplicates, sorted.
fn sorted<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    texts.into_iter().collect()
}

/// Reports whether the Pod runs on Windows nodes.
fn is_windows(pod: &Pod<'_>) -> bool {
    object::text(pod.spec, &["os", "name"]) == "windows"
}

/// Reports whether the users of the Pod are not those of the node, for which some checks are
/// relaxed.
fn has_own_users(pod: &Pod<'_>) -> bool {
    object::at(pod.spec, &["hostUsers"]) == &Value::Bool(false)
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}
