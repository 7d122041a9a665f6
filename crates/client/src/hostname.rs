//! The name of the machine or pod that this process runs on, for the identity in leader election
//! and the reporting instance of events.

/// Returns the name of the pod or machine: `HOSTNAME`, or the kernel's host name. `None` if neither
/// is known.
pub fn hostname() -> Option<String> {
    let name = std::env::var("HOSTNAME").ok();
    let name = name.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}
