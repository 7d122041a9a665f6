use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
use opkit_cache::FieldChange;
use opkit_client::ObjectKey;
use serde_json::json;

use super::*;
use crate::Request;
use crate::record::{Cause, Outcome};

/// The change that caused a reconcile: kind (empty for the reconciled object), name, field, new
/// value.
pub(super) type Change = (&'static str, &'static str, &'static str, String);

pub(super) fn change((kind, name, path, new): Change) -> Cause {
    let kind: Option<Arc<str>> = (!kind.is_empty()).then(|| kind.into());
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&new, &mut hasher);
    let field = FieldChange::new(path, std::hash::Hasher::finish(&hasher));
    Cause::Changed {
        kind,
        name: name.to_owned(),
        fields: vec![field],
    }
}

pub(super) fn record(causes: Vec<Cause>, wrote: &[(&str, &str)]) -> ReconcileRecord {
    use opkit_workqueue::{Merge, Reasons};
    let mut reasons = Reasons::default();
    for cause in causes {
        reasons.merge(Reasons::from(cause));
    }
    let write = |(kind, name): &(&str, &str)| Write {
        verb: "patch",
        kind: (*kind).to_owned(),
        key: ObjectKey::from(*name),
        subresource: String::new(),
    };
    ReconcileRecord {
        controller: "robot".into(),
        kind: "Robot".into(),
        request: Request::from("one"),
        number: 0,
        causes: reasons,
        cache_reads: 0,
        live_reads: 0,
        writes: wrote.iter().map(write).collect(),
        started: jiff::Timestamp::UNIX_EPOCH,
        duration: Duration::ZERO,
        result: Outcome::Ok,
        hot_loop: None,
    }
}

/// Reconciles at the interval `every` and returns the number of reconciles until a loop is found.
fn found(every: Duration, reconcile: impl Fn(u32) -> ReconcileRecord) -> Option<(u32, HotLoop)> {
    let mut tracker = Tracker::default();
    (0..200).find_map(|n| {
        let found = tracker.observe(every * n, &reconcile(n), "robot-operator.robot");
        found.map(|found| (n, found))
    })
}

#[test]
fn a_status_that_changes_with_each_reconcile_is_a_loop() {
    let (n, found) = found(Duration::from_millis(30), |n| {
        let own = ("", "one", ".status.lastSeen", n.to_string());
        record(vec![change(own)], &[("Robot", "one")])
    })
    .unwrap();
    assert!(n <= 10, "{n}");
    assert_eq!(found.field, ".status.lastSeen");
    assert_eq!(found.object, "Robot one");
    assert_eq!(found.manager.as_deref(), Some("robot-operator.robot"));
}

#[test]
fn two_managers_that_undo_each_other_are_a_fight() {
    let (n, found) = found(Duration::from_secs(1), |_| {
        let theirs = ("Deployment", "one", ".spec.replicas", "7".to_owned());
        record(vec![change(theirs)], &[("Deployment", "one")])
    })
    .unwrap();
    assert!(n <= 10, "{n}");
    assert_eq!(
        (&*found.object, &*found.field),
        ("Deployment one", ".spec.replicas")
    );
}

#[test]
fn frequent_reconciles_without_a_loop_are_not_reported() {
    let check = |every: Duration, reconcile: &dyn Fn(u32) -> ReconcileRecord, what: &str| {
        assert_eq!(found(every, reconcile), None, "{what}");
    };
    let moment = Duration::from_millis(20);
    let roll_out = |n: u32| {
        let child = change(("Deployment", "one", ".status.readyReplicas", n.to_string()));
        let own = change(("", "one", ".status.readyReplicas", n.to_string()));
        record(vec![child, own], &[("Robot", "one")])
    };
    check(moment, &roll_out, "a rollout of many steps");
    let echo = |n: u32| match n % 2 {
        0 => record(vec![Cause::Requeued], &[("Robot", "one")]),
        _ => record(vec![change(("", "one", ".status.a", n.to_string()))], &[]),
    };
    check(moment, &echo, "a status that is written on a timer");
    let slow = |n: u32| {
        record(
            vec![change(("", "one", ".status.a", n.to_string()))],
            &[("Robot", "one")],
        )
    };
    check(Duration::from_secs(60), &slow, "once a minute");
    let edited = |n: u32| {
        let by_hand = change(("", "one", ".spec.size", n.to_string()));
        record(vec![by_hand], &[("Deployment", "one")])
    };
    check(moment, &edited, "a spec that a user edits");
    check(
        moment,
        &|n| record(vec![Cause::Retry(n)], &[("Robot", "one")]),
        "retries",
    );
}

#[test]
fn the_manager_of_a_field_is_found() {
    let entry = |manager: &str, fields: serde_json::Value| ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..Default::default()
    };
    let entries = [
        entry("ours", json!({"f:spec": {"f:replicas": {}, "f:image": {}}})),
        entry("hpa", json!({"f:spec": {"f:replicas": {}}})),
        entry(
            "other",
            json!({"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}}}),
        ),
    ];
    let check = |path: &str, expected: Option<&str>| {
        assert_eq!(
            manager_of(&entries, path, "ours").as_deref(),
            expected,
            "{path}"
        );
    };
    check(".spec.replicas", Some("hpa"));
    check(".spec.image", None);
    check(".status.conditions[Ready].status", Some("other"));
    check(".status.conditions[Live].status", None);
}

fn record_of(writes: &[(&'static str, &str)]) -> ReconcileRecord {
    let mut record = record(vec![Cause::Requeued], &[]);
    let write = |(verb, name): &(&'static str, &str)| Write {
        verb,
        kind: "Secret".to_owned(),
        key: ObjectKey::from(*name),
        subresource: String::new(),
    };
    record.writes = writes.iter().map(write).collect();
    record
}

#[test]
fn a_child_that_is_created_and_pruned_alternately_is_a_loop() {
    let turns = |every: Duration| {
        found(every, |n| match n % 2 {
            0 => record_of(&[("create", "password"), ("apply", "password")]),
            _ => record_of(&[("prune", "password")]),
        })
    };
    let (n, found) = turns(Duration::from_millis(30)).unwrap();
    assert_eq!(n, 5, "three times");
    assert_eq!(
        found.to_string(),
        "loop: Secret password is created and pruned alternately, 6 reconciles so far: a child that a reconcile does not apply is pruned; apply it in every reconcile, or create it with cx.create_once"
    );
    assert_eq!(turns(Duration::from_secs(61)), None, "switched on and off");
}

#[test]
fn children_with_changing_names_are_not_a_loop() {
    let other_names = |n: u32| {
        let (new, old) = (format!("job-{n}"), format!("job-{}", n.wrapping_sub(1)));
        record_of(&[("create", &new), ("prune", &old)])
    };
    assert_eq!(found(Duration::from_millis(30), other_names), None);
    let created = |_| record_of(&[("create", "one")]);
    assert_eq!(found(Duration::from_millis(30), created), None);
}
