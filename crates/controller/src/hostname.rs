//! The name of the machine, or of the pod, that this process runs on.

/// The name, if it can be found.
pub(crate) fn hostname() -> Option<String> {
    let name = std::env::var("HOSTNAME").ok();
    let name = name.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}
