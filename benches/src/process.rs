//! What the operating system says of this process.

use std::time::Duration;

/// Resident memory in bytes.
pub fn resident() -> u64 {
    status("VmRSS:")
}

/// The most resident memory in bytes since the start, or since [`forget_peak`].
pub fn peak() -> u64 {
    status("VmHWM:")
}

/// Begins to measure the [`peak`] anew.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Processor time used so far, by all threads.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which may hold anything. A tick is 10 ms on Linux.
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
