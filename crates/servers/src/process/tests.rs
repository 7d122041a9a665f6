use super::*;

#[test]
fn proc_files_are_parsed() {
    // The name of the binary contains spaces and brackets.
    let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 9 0 123400 5 6 7";
    let status = "Name:\ta\nVmSize:\t    2048 kB\nVmRSS:\t      16 kB\n";
    let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files\n";
    let system = "cpu 1 2 3\nbtime 1700000000\n";
    let expected = ProcessStats {
        cpu_seconds: 3.0,
        start_time_seconds: 1_700_001_234.0,
        resident_bytes: 16384.0,
        virtual_bytes: 2_097_152.0,
        open_fds: 0.0,
        max_fds: Some(1024.0),
    };
    assert_eq!(
        ProcessStats::parse(stat, status, limits, system),
        Some(expected)
    );
    let unlimited = ProcessStats::parse(stat, status, "Max open files  unlimited  x", system);
    assert_eq!(unlimited.unwrap().max_fds, None);
    assert_eq!(ProcessStats::parse("", status, limits, system), None);
}

#[test]
#[cfg(target_os = "linux")]
fn this_process_has_its_metrics() {
    let process = ProcessStats::read().unwrap();
    assert!(process.resident_bytes > 1e6, "{process:?}");
    assert!(
        process.virtual_bytes >= process.resident_bytes,
        "{process:?}"
    );
    assert!(process.open_fds >= 3.0, "{process:?}");
    let now = jiff::Timestamp::now().as_second() as f64;
    let age = now - process.start_time_seconds;
    assert!((-2.0..3600.0).contains(&age), "{age}");
}
