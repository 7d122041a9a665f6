//! Objects of the operator's kinds: finalizers, loops, status.

use super::*;
use Severity::{Fail, Warning};

const LOGS: &str =
    "kubectl -n ops logs -l app.kubernetes.io/name=op --tail=-1 | grep -w default/one";

fn robot(facts: &mut Facts) -> &mut Value {
    &mut facts.instances[0]
}

#[test]
fn a_deletion_that_does_not_end_is_found() {
    let deleted = |seconds: i64, finalizer: &'static str| {
        move |facts: &mut Facts| {
            let robot = robot(facts);
            robot["metadata"]["deletionTimestamp"] = json!(ago(seconds));
            robot["metadata"]["finalizers"] = json!([finalizer]);
            robot["status"]["conditions"][0] = json!({"type": "Ready", "status": "False",
                "message": "store unreachable", "lastTransitionTime": ago(60)});
        }
    };
    let own = "robot.example.com/cleanup";
    one(
        deleted(3 * 86_400, own),
        Warning,
        "finalizer",
        &[
            "robot/one in default has been terminating for 3 d: robot.example.com/cleanup, last error \"store unreachable\"",
            LOGS,
        ],
    );
    assert_eq!(findings(deleted(60, own)), []);
    let stop = |facts: &mut Facts| live(facts, "Deployment")["status"] = json!({});
    let stopped = findings(|facts| {
        deleted(600, own)(facts);
        stop(facts);
    });
    has(
        &stopped,
        Fail,
        "finalizer",
        &["the operator that removes it does not run"],
    );
    // Another controller removes this one.
    let other = findings(|facts| {
        deleted(600, "acme.io/protect")(facts);
        stop(facts);
    });
    let words = ["acme.io/protect", "kubectl -n default describe robot/one"];
    has(&other, Warning, "finalizer", &words);
}

/// Sets the states of the object: its version, and the owner of `.spec.replicas`.
fn looks(facts: &mut Facts, states: &[(&str, &str)]) {
    facts.looks.clear();
    for (version, owner) in states {
        let robot = robot(facts);
        robot["metadata"]["resourceVersion"] = json!(version);
        robot["metadata"]["managedFields"][0]["manager"] = json!(owner);
        let look = Look::of(&facts.instances);
        facts.looks.push(look);
    }
}

#[test]
fn a_field_that_is_set_in_turn_is_found() {
    let words = [
        "robot/one in default: .spec.replicas is set in turn by hpa and op.robot",
        LOGS,
    ];
    one(
        |facts| {
            looks(
                facts,
                &[
                    ("1", "op.robot"),
                    ("2", "hpa"),
                    ("3", "op.robot"),
                    ("3", "op.robot"),
                ],
            )
        },
        Warning,
        "loop",
        &words,
    );
    // The creator of the object is not one of them.
    one(
        |facts| {
            looks(
                facts,
                &[
                    ("1", "kubectl"),
                    ("2", "op.robot"),
                    ("3", "hpa"),
                    ("4", "op.robot"),
                ],
            )
        },
        Warning,
        "loop",
        &words,
    );
    // The owner changed once.
    let once = [("1", "kubectl"), ("2", "hpa"), ("2", "hpa"), ("2", "hpa")];
    assert_eq!(findings(|facts| looks(facts, &once)), []);
}

#[test]
fn an_object_that_changes_all_the_time_is_found() {
    let busy = [
        ("1", "op.robot"),
        ("7", "op.robot"),
        ("9", "op.robot"),
        ("12", "op.robot"),
    ];
    let words = [
        "robot/one in default has changed 3 times in 4 looks; the last writer is op.robot (object)",
    ];
    one(|facts| looks(facts, &busy), Warning, "loop", &words);
    let some = [
        ("1", "op.robot"),
        ("7", "op.robot"),
        ("7", "op.robot"),
        ("12", "op.robot"),
    ];
    assert_eq!(findings(|facts| looks(facts, &some)), []);
    assert_eq!(findings(|facts| looks(facts, &busy[..2])), []);
}

#[test]
fn a_change_that_is_not_observed_is_a_warning() {
    one(
        |facts| robot(facts)["metadata"]["generation"] = json!(3),
        Warning,
        "status",
        &[
            "robot/one in default was changed 15 min ago",
            "generation 3, observed 2",
        ],
    );
    one(
        |facts| robot(facts)["status"] = json!({}),
        Warning,
        "status",
        &["robot/one in default has not been reconciled for 15 min"],
    );
    let recent = |facts: &mut Facts| {
        robot(facts)["metadata"]["generation"] = json!(3);
        robot(facts)["metadata"]["managedFields"][0]["time"] = json!(ago(20));
    };
    assert_eq!(findings(recent), []);
}

#[test]
fn an_object_that_is_not_ready_for_long_is_a_warning() {
    let condition = |type_: &str, status: &str, seconds: i64| {
        json!([{"type": type_, "status": status, "reason": "Broken", "message": "no disk",
            "lastTransitionTime": ago(seconds)}])
    };
    for (type_, status) in [("Ready", "False"), ("Stalled", "True")] {
        let state =
            format!("robot/one in default has had {type_}={status} for 20 min: Broken \"no disk\"");
        one(
            |facts| robot(facts)["status"]["conditions"] = condition(type_, status, 1200),
            Warning,
            "status",
            &[&state, LOGS],
        );
    }
    let recent = |facts: &mut Facts| {
        robot(facts)["status"]["conditions"] = condition("Ready", "False", 60);
    };
    assert_eq!(findings(recent), []);
}
