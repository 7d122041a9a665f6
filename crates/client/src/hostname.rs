//! The pod or machine that this process runs on: its name, for the identity in leader election and
//! the reporting instance of events, and its namespace.

/// File with the namespace of the pod, from its service account.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Returns the name of the pod or machine: `HOSTNAME`, or the kernel's host name. `None` if neither
/// is known.
pub fn hostname() -> Option<String> {
    let name = std::env::var("HOSTNAME").ok();
    let name = name.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}

/// Returns the namespace of the pod, or `None` outside of a pod.
pub fn pod_namespace() -> Option<String> {
    let namespace = std::fs::read_to_string(NAMESPACE_FILE).ok()?;
    Some(namespace.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}
