//! Figures of this process from the operating system.

use std::time::Duration;

/// Returns the resident memory, in bytes.
pub fn resident() -> u64 {
    status("VmRSS:")
}

/// Returns the peak of the resident memory since the start, or since [`forget_peak`], in bytes.
pub fn peak() -> u64 {
    status("VmHWM:")
}

/// Resets the [`peak`].
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the processor time used so far, by all threads.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which may contain any character. A tick is 10 ms on Linux.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |n| fields.split_whitespace().nth(n)?.parse::<u64>().ok();
    let ticks = ticks(11).unwrap_or_default() + ticks(12).unwrap_or_default();
    Duration::from_millis(ticks * 10)
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
