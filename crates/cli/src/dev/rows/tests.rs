use serde_json::json;

use super::*;

#[test]
fn a_status_without_the_condition_ready_shows_another_condition() {
    let check = |status: Value, ready: &str, text: &str| {
        let found = summary(&Unstructured::from(json!({ "status": status })));
        let (found_ready, found_text) = match &found {
            Some(it) => (it.ready.as_deref().unwrap_or("-"), it.text.as_str()),
            None => ("-", "-"),
        };
        assert_eq!((found_ready, found_text), (ready, text), "{status}");
    };
    let at = |type_: &str, status: &str, reason: &str, time: &str| json!({"type": type_, "status": status, "reason": reason, "lastTransitionTime": time});
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    let ready = at("Ready", "True", "Rollout", early);
    let available = at("Available", "False", "NoServers", early);
    let degraded = at("Degraded", "True", "SecretNotFound", late);
    let progressing = at("Progressing", "False", "Stopped", early);
    check(
        json!({"conditions": [degraded, available, ready], "phase": "Failed"}),
        "True",
        "Rollout",
    );
    check(
        json!({"conditions": [{"type": "Ready", "status": "False"}]}),
        "False",
        "-",
    );
    check(
        json!({"conditions": [degraded, available]}),
        "False",
        "Available=False: NoServers",
    );
    check(
        json!({"conditions": [progressing, degraded]}),
        "-",
        "Degraded=True: SecretNotFound",
    );
    check(
        json!({"conditions": [degraded, progressing]}),
        "-",
        "Degraded=True: SecretNotFound",
    );
    check(
        json!({"conditions": [{"type": "Synced", "status": "True"}]}),
        "-",
        "Synced=True",
    );
    check(
        json!({"conditions": [], "phase": "Running"}),
        "-",
        "Running",
    );
    check(json!({"phase": "Running"}), "-", "Running");
    check(json!({}), "-", "-");
    check(Value::Null, "-", "-");
}
