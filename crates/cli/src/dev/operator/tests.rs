use tempfile::TempDir;

use super::*;

#[test]
fn the_last_error_of_a_log_is_returned() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let check = |text: &str, expected: &str| {
        fs::write(&log, text).unwrap();
        assert_eq!(last_error(&log), expected);
    };
    check("INFO starting\nop: no kubeconfig\n\n", "op: no kubeconfig");
    check(
        "error: the following required arguments were not provided:\n  --store-url <STORE_URL>\n\n\
         Usage: op --store-url <STORE_URL> [COMMAND]\n\nFor more information, try '--help'.\n",
        "error: the following required arguments were not provided: --store-url <STORE_URL>",
    );
    check("", &format!("see {}", log.display()));
}
