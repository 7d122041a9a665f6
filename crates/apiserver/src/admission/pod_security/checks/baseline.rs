//! The checks of the level `baseline`.

use serde_json::Value;

use super::{
    Pod, Violation, bad_containers, containers, has_own_users, is_true, named, plural, quoted,
    security, setters, sorted,
};
use crate::object;

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Capabilities that a container may add.
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

const SE_LINUX_TYPES: &[&str] = &["", "container_t", "container_init_t", "container_kvm_t"];
const SE_LINUX_TYPES_1_31: &[&str] = &[
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

/// The sysctls that a Pod may set, with the minor version that allowed them first.
const SYSCTLS: &[(u32, &str)] = &[
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
];

pub(super) fn app_armor_profile(pod: &Pod<'_>) -> Option<Violation> {
    let bad = |spec: &Value| {
        let profile = security(spec, &["appArmorProfile"]);
        let type_ = object::text(profile, &["type"]);
        !profile.is_null() && !matches!(type_, "RuntimeDefault" | "Localhost")
    };
    let type_of = |spec| security(spec, &["appArmorProfile", "type"]).as_str();
    let is_pod_bad = bad(pod.spec);
    let bad_names = bad_containers(pod, bad);
    let specs = std::iter::once(pod.spec).chain(containers(pod));
    let types = sorted(specs.filter(|spec| bad(spec)).filter_map(type_of));
    let mut values: Vec<String> = types.into_iter().map(str::to_owned).collect();
    let annotations = object::at(pod.metadata, &["annotations"]).as_object();
    let mut forbidden: Vec<String> = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            let is_allowed =
                value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/");
            key.starts_with(APP_ARMOR) && !is_allowed
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut subjects = setters(is_pod_bad, &bad_names);
    if !forbidden.is_empty() {
        forbidden.sort();
        let noun = plural("annotation", "annotations", forbidden.len());
        subjects = match subjects.is_empty() {
            true => noun.to_owned(),
            false => format!("{subjects} and {noun}"),
        };
        values.append(&mut forbidden);
    }
    if subjects.is_empty() {
        return None;
    }
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    let values = quoted(values.iter().map(String::as_str));
    Violation::new(
        reason,
        format!("{subjects} must not set AppArmor profile type to {values}"),
    )
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    fn added(container: &Value) -> impl Iterator<Item = &str> {
        let added = security(container, &["capabilities", "add"]).as_array();
        let added = added.into_iter().flatten().filter_map(Value::as_str);
        added.filter(|capability| !CAPABILITIES.contains(capability))
    }
    let bad = bad_containers(pod, |container| added(container).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let forbidden = sorted(containers(pod).flat_map(added));
    Violation::new(
        "non-default capabilities",
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&bad),
            quoted(forbidden)
        ),
    )
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| is_true(object::at(pod.spec, &[field])))
        .map(|field| format!("{field}=true"))
        .collect();
    match shared.is_empty() {
        true => None,
        false => Violation::new("host namespaces", shared.join(", ")),
    }
}

pub(super) fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = object::items(pod.spec, &["volumes"]).iter();
    let bad: Vec<&str> = volumes
        .filter(|volume| !object::at(volume, &["hostPath"]).is_null())
        .map(|volume| object::text(volume, &["name"]))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let noun = plural("volume", "volumes", bad.len());
    Violation::new("hostPath volumes", format!("{noun} {}", quoted(bad)))
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    fn ports(container: &Value) -> impl Iterator<Item = String> {
        let ports = object::items(container, &["ports"]).iter();
        let ports = ports.map(|port| object::int(port, &["hostPort"]));
        ports.filter(|port| *port != 0).map(|port| port.to_string())
    }
    let bad = bad_containers(pod, |container| ports(container).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let forbidden: Vec<String> = containers(pod).flat_map(ports).collect();
    let forbidden: Vec<&str> = sorted(forbidden.iter().map(String::as_str))
        .into_iter()
        .collect();
    Violation::new(
        "hostPort",
        format!(
            "{} {} {} {}",
            named(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", forbidden.len()),
            forbidden.join(", ")
        ),
    )
}

pub(super) fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let handlers = HANDLERS.into_iter().map(|path| object::at(container, path));
        let hosts = handlers.flat_map(|handler| {
            ["httpGet", "tcpSocket"].map(|action| object::text(handler, &[action, "host"]))
        });
        hosts.filter(|host| !host.is_empty())
    }
    let bad = bad_containers(pod, |container| hosts(container).next().is_some());
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<&str> = sorted(bad).into_iter().collect();
    let forbidden = sorted(containers(pod).flat_map(hosts));
    Violation::new(
        "probe or lifecycle host",
        format!(
            "{} {} {} {}",
            named(&bad),
            plural("uses", "use", bad.len()),
            plural(
                "probe or lifecycle host",
                "probe or lifecycle hosts",
                forbidden.len()
            ),
            quoted(forbidden)
        ),
    )
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let bad = bad_containers(pod, |container| {
        is_true(security(container, &["privileged"]))
    });
    if bad.is_empty() {
        return None;
    }
    Violation::new(
        "privileged",
        format!(
            "{} must not set securityContext.privileged=true",
            named(&bad)
        ),
    )
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    fn type_of(container: &Value) -> Option<&str> {
        let type_ = security(container, &["procMount"]).as_str();
        type_.filter(|type_| *type_ != "Default")
    }
    let bad = bad_containers(pod, |container| type_of(container).is_some());
    if bad.is_empty() {
        return None;
    }
    let types = sorted(containers(pod).filter_map(type_of));
    Violation::new(
        "procMount",
        format!(
            "{} must not set securityContext.procMount to {}",
            named(&bad),
            quoted(types)
        ),
    )
}

pub(super) fn proc_mount_of_host_users(pod: &Pod<'_>) -> Option<Violation> {
    match has_own_users(pod) {
        true => None,
        false => proc_mount(pod),
    }
}

pub(super) fn se_linux_options(pod: &Pod<'_>) -> Option<Violation> {
    se_linux(pod, SE_LINUX_TYPES)
}

pub(super) fn se_linux_options_1_31(pod: &Pod<'_>) -> Option<Violation> {
    se_linux(pod, SE_LINUX_TYPES_1_31)
}

fn se_linux(pod: &Pod<'_>, allowed: &[&str]) -> Option<Violation> {
    fn field<'a>(spec: &'a Value, field: &str) -> &'a str {
        object::text(security(spec, &["seLinuxOptions"]), &[field])
    }
    let has_bad_type = |spec: &Value| !allowed.contains(&field(spec, "type"));
    let is_set = |spec: &Value, name: &str| !field(spec, name).is_empty();
    let is_bad = |spec: &Value| has_bad_type(spec) || is_set(spec, "user") || is_set(spec, "role");
    let subjects = setters(is_bad(pod.spec), &bad_containers(pod, is_bad));
    if subjects.is_empty() {
        return None;
    }
    let specs = || std::iter::once(pod.spec).chain(containers(pod));
    let types = sorted(
        specs()
            .filter(|spec| has_bad_type(spec))
            .map(|spec| field(spec, "type")),
    );
    let mut data = Vec::new();
    if !types.is_empty() {
        let noun = plural("type", "types", types.len());
        data.push(format!("{noun} {}", quoted(types)));
    }
    for name in ["user", "role"] {
        if specs().any(|spec| is_set(spec, name)) {
            data.push(format!("{name} may not be set"));
        }
    }
    let data = data.join("; ");
    Violation::new(
        "seLinuxOptions",
        format!("{subjects} set forbidden securityContext.seLinuxOptions: {data}"),
    )
}

pub(super) fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let annotation = |key: String| {
        let value = object::text(pod.metadata, &["annotations", &key]).to_owned();
        let is_missing = object::at(pod.metadata, &["annotations", &key]).is_null();
        let is_allowed = is_missing
            || matches!(value.as_str(), "runtime/default" | "docker/default")
            || value.starts_with("localhost/");
        (!is_allowed).then(|| format!("{key}={value:?}"))
    };
    let names = containers(pod).map(|container| object::text(container, &["name"]));
    let keys = names.map(|name| format!("{SECCOMP_CONTAINER}{name}"));
    let mut forbidden: Vec<String> = std::iter::once(SECCOMP_POD.to_owned())
        .chain(keys)
        .filter_map(annotation)
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    forbidden.sort();
    forbidden.dedup();
    let noun = plural("annotation", "annotations", forbidden.len());
    let list = forbidden.join(", ");
    Violation::new("seccompProfile", format!("forbidden {noun} {list}"))
}

/// Reports whether the Pod's spec or the container sets a seccomp profile that is not allowed.
pub(super) fn has_bad_seccomp(spec: &Value) -> bool {
    let profile = security(spec, &["seccompProfile"]);
    let type_ = object::text(profile, &["type"]);
    !profile.is_null() && !matches!(type_, "RuntimeDefault" | "Localhost")
}

pub(super) fn seccomp_profile(pod: &Pod<'_>) -> Option<Violation> {
    let bad = bad_containers(pod, has_bad_seccomp);
    let subjects = setters(has_bad_seccomp(pod.spec), &bad);
    if subjects.is_empty() {
        return None;
    }
    let specs = std::iter::once(pod.spec).chain(containers(pod));
    let bad = specs.filter(|spec| has_bad_seccomp(spec));
    let types = bad.filter_map(|spec| security(spec, &["seccompProfile", "type"]).as_str());
    let types = quoted(sorted(types));
    Violation::new(
        "seccompProfile",
        format!("{subjects} must not set securityContext.seccompProfile.type to {types}"),
    )
}

pub(super) fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    sysctls_since(pod, 0)
}

pub(super) fn sysctls_1_27(pod: &Pod<'_>) -> Option<Violation> {
    sysctls_since(pod, 27)
}

pub(super) fn sysctls_1_29(pod: &Pod<'_>) -> Option<Violation> {
    sysctls_since(pod, 29)
}

pub(super) fn sysctls_1_32(pod: &Pod<'_>) -> Option<Violation> {
    sysctls_since(pod, 32)
}

fn sysctls_since(pod: &Pod<'_>, minor: u32) -> Option<Violation> {
    let is_allowed = |name: &str| {
        let mut allowed = SYSCTLS.iter().filter(|(since, _)| *since <= minor);
        allowed.any(|(_, allowed)| *allowed == name)
    };
    let set = object::items(pod.spec, &["securityContext", "sysctls"]).iter();
    let forbidden: Vec<&str> = set
        .map(|sysctl| object::text(sysctl, &["name"]))
        .filter(|name| !is_allowed(name))
        .collect();
    match forbidden.is_empty() {
        true => None,
        false => Violation::new("forbidden sysctls", forbidden.join(", ")),
    }
}

pub(super) fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |spec: &Value| is_true(security(spec, &["windowsOptions", "hostProcess"]));
    let subjects = setters(is_bad(pod.spec), &bad_containers(pod, is_bad));
    if subjects.is_empty() {
        return None;
    }
    Violation::new(
        "hostProcess",
        format!("{subjects} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
