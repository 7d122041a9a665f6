use serde_json::json;

use super::*;

fn record(number: u64, at: &str, causes: &[&str], status: bool) -> Reconcile {
    let writes = match status {
        true => json!([{"verb": "patch", "kind": "Robot", "name": "one", "subresource": "status"}]),
        false => json!([]),
    };
    serde_json::from_value(json!({
        "controller": "robot", "kind": "Robot", "namespace": "default", "name": "one",
        "number": number, "causes": causes, "cacheReads": 1, "liveReads": 0, "writes": writes,
        "started": at, "durationSeconds": 0.0031, "result": {"outcome": "ok"}, "hotLoop": null,
    }))
    .unwrap()
}

#[test]
fn reconciles_are_lines_newest_first() {
    let records = [
        record(3, "2026-01-01T00:00:00Z", &["initial list"], false),
        record(
            4,
            "2026-01-01T00:00:00.1Z",
            &["Deployment one changed: .status.readyReplicas 1 -> 2"],
            true,
        ),
    ];
    let now = "2026-01-01T00:00:12Z".parse().unwrap();
    assert_eq!(
        print(&records, now),
        "robot/one in default reconciled 4 times by robot, the last 2 in 103 ms, idle since 12 s\n \
         #4  Deployment one changed: .status.readyReplicas 1 -> 2  read 1 (cache)  wrote status  3.1 ms  ok\n \
         #3  initial list                                          read 1 (cache)                3.1 ms  ok\n"
    );
}

#[test]
fn a_loop_is_said_first() {
    let mut looping = record(40, "2026-01-01T00:00:00Z", &["one changed"], true);
    looping.hot_loop = Some(HotLoop {
        object: "Robot one".to_owned(),
        field: ".status.seen".to_owned(),
        manager: Some("robot-operator.robot".to_owned()),
        count: 39,
    });
    let text = print(&[looping], "2026-01-01T00:00:01Z".parse().unwrap());
    let second = text.lines().nth(1).unwrap();
    assert_eq!(
        second,
        " LOOP: robot-operator.robot keeps changing .status.seen of Robot one (39 reconciles)"
    );
}
