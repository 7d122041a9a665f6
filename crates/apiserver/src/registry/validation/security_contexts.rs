//! Validation of the security contexts of Pods and containers.

use serde_json::json;

use super::field::{Errors, Field};
use super::format;

const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
/// Maximum length of the path of an AppArmor profile in bytes.
const PROFILE_PATH_MAX: usize = 4_095;

/// Adds the errors in the security context of a Pod.
pub(super) fn pod_security_context(spec: &Field<'_>, errors: &mut Errors) {
    let context = spec.get("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        let id = context.get(name);
        if id.is_set() {
            format::range(&id, format::user_id(id.int()), errors);
        }
    }
    for group in context.get("supplementalGroups").items() {
        format::range(&group, format::user_id(group.int()), errors);
    }
    let shared = spec.get("shareProcessNamespace");
    if shared.is_true() && spec.get("hostPID").is_true() {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid_value(context.join("shareProcessNamespace"), json!(true), detail);
    }
    sysctls(spec, &context.get("sysctls"), errors);
    let policies = ["Always", "OnRootMismatch"];
    errors.supported_if_set(&context.get("fsGroupChangePolicy"), &policies);
    seccomp_profile(&context.get("seccompProfile"), errors);
    windows_options(&context.get("windowsOptions"), errors);
    app_armor_profile(&context.get("appArmorProfile"), errors);
    let policies = ["Merge", "Strict"];
    errors.supported_if_set(&context.get("supplementalGroupsPolicy"), &policies);
    let policies = ["MountOption", "Recursive"];
    errors.supported_if_set(&context.get("seLinuxChangePolicy"), &policies);
}

fn sysctls(spec: &Field<'_>, list: &Field<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for sysctl in list.items() {
        let name = sysctl.get("name");
        let text = name.text();
        if text.is_empty() {
            errors.required(&name, "");
        } else if !is_sysctl(text) {
            errors.invalid(&name, SYSCTL);
        } else if names.contains(&text) {
            errors.duplicate(&name.path, text);
        }
        let normal = text.replace('/', ".");
        let is_ipc = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."]
            .iter()
            .any(|prefix| normal.starts_with(prefix));
        if spec.get("hostNetwork").is_true() && normal.starts_with("net.") {
            errors.invalid(&name, "may not be specified when 'hostNetwork' is true");
        } else if spec.get("hostIPC").is_true() && is_ipc {
            errors.invalid(&name, "may not be specified when 'hostIPC' is true");
        }
        names.push(text);
    }
}

fn is_sysctl(text: &str) -> bool {
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_segment = |segment: &str| {
        segment.starts_with(is_edge)
            && segment.ends_with(is_edge)
            && segment
                .chars()
                .all(|c| is_edge(c) || matches!(c, '-' | '_'))
    };
    text.len() <= 253 && text.split(['.', '/']).all(is_segment)
}

fn seccomp_profile(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (type_, path) = (profile.get("type"), profile.get("localhostProfile"));
    match type_.text() {
        "" => errors.required(&type_, "type is required when seccompProfile is set"),
        _ => errors.supported(&type_, PROFILES),
    }
    if type_.text() == "Localhost" {
        match path.is_set() {
            true => format::descending_path(&path, errors),
            false => errors.required(&path, "must be set when seccomp type is Localhost"),
        }
    } else if path.is_set() {
        let value = format!(
            "{{\"Type\":{},\"LocalhostProfile\":{}}}",
            json!(type_.text()),
            path.value
        );
        let detail = "can only be set when seccomp type is Localhost";
        errors.invalid_printed(&path.path, &value, detail);
    }
}

fn app_armor_profile(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (type_, path) = (profile.get("type"), profile.get("localhostProfile"));
    match type_.text() {
        "Localhost" => {
            let text = path.text();
            if text.trim() != text {
                errors.invalid(&path, "must not be padded with whitespace");
            } else if text.is_empty() {
                errors.required(&path, "must be set when AppArmor type is Localhost");
            }
            errors.not_longer(&path, PROFILE_PATH_MAX);
        }
        "RuntimeDefault" | "Unconfined" => {
            if path.is_set() {
                errors.invalid(&path, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => errors.required(&type_, "type is required when appArmorProfile is set"),
        _ => errors.not_supported(&type_, PROFILES),
    }
}

fn windows_options(options: &Field<'_>, errors: &mut Errors) {
    let name = options.get("gmsaCredentialSpecName");
    if name.is_set() {
        errors.rules(&name, format::dns_subdomain(name.text()));
    }
    let spec = options.get("gmsaCredentialSpec");
    if spec.is_set() && spec.is_empty() {
        errors.invalid(&spec, "gmsaCredentialSpec cannot be an empty string");
    } else if spec.text().len() > 64 * 1024 {
        errors.invalid(&spec, "gmsaCredentialSpec size must be under 64 KiB");
    }
    let user = options.get("runAsUserName");
    if !user.is_set() {
        return;
    }
    let text = user.text();
    let mut parts = text.split('\\');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    if text.is_empty() {
        errors.invalid(&user, "runAsUserName cannot be an empty string");
    } else if text.contains(|c: char| c.is_ascii_control()) {
        errors.invalid(&user, "runAsUserName cannot contain control characters");
    } else if parts.next().is_some() {
        errors.invalid(
            &user,
            "runAsUserName cannot contain more than one backslash",
        );
    } else {
        let account = second.unwrap_or(first);
        if account.is_empty() {
            errors.invalid(&user, "runAsUserName's User cannot be empty");
        } else if account.len() > 104 {
            let detail = "runAsUserName's User length must not be longer than 104 characters";
            errors.invalid(&user, detail);
        }
        if !account.is_empty() && account.chars().all(|c| matches!(c, '.' | ' ')) {
            let detail = "runAsUserName's User cannot contain only periods or spaces";
            errors.invalid(&user, detail);
        }
        if account.contains(|c: char| "\"/\\:;|=,+*?<>@[]".contains(c)) {
            let detail = "runAsUserName's User cannot contain the following characters: \
                          \"/\\:;|=,+*?<>@[]";
            errors.invalid(&user, detail);
        }
    }
}

/// Adds the errors in the security context of a container. `host_users` reports whether the Pod
/// runs in the user namespace of its node.
pub(super) fn security_context(context: &Field<'_>, host_users: bool, errors: &mut Errors) {
    if !context.is_set() {
        return;
    }
    for name in ["runAsUser", "runAsGroup"] {
        let id = context.get(name);
        if id.is_set() {
            format::range(&id, format::user_id(id.int()), errors);
        }
    }
    let mount = context.get("procMount");
    errors.supported_if_set(&mount, &["Default", "Unmasked"]);
    if host_users && mount.text() == "Unmasked" {
        errors.invalid(&mount, "`hostUsers` must be false to use `Unmasked`");
    }
    seccomp_profile(&context.get("seccompProfile"), errors);
    let escalation = context.get("allowPrivilegeEscalation");
    if escalation.is_set() && !escalation.is_true() {
        let printed = printed(context);
        if context.get("privileged").is_true() {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.invalid_printed(&context.path, &printed, detail);
        }
        for capability in context.at(&["capabilities", "add"]).items() {
            if capability.text() == "CAP_SYS_ADMIN" {
                let detail = "cannot set `allowPrivilegeEscalation` to false and \
                              `capabilities.Add` CAP_SYS_ADMIN";
                errors.invalid_printed(&context.path, &printed, detail);
            }
        }
    }
    windows_options(&context.get("windowsOptions"), errors);
    app_armor_profile(&context.get("appArmorProfile"), errors);
}

/// Prints a security context as Kubernetes prints its internal type: with all fields, in the order
/// of the Go struct.
fn printed(context: &Field<'_>) -> String {
    let list = |name: &str| context.at(&["capabilities", name]).value.to_string();
    let capabilities = match context.get("capabilities").is_set() {
        true => format!("{{\"Add\":{},\"Drop\":{}}}", list("add"), list("drop")),
        false => "null".to_owned(),
    };
    let fields = [
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    let fields = fields.map(|(name, field)| format!("\"{name}\":{}", context.get(field).value));
    format!("{{\"Capabilities\":{capabilities},{}}}", fields.join(","))
}
