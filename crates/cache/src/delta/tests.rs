use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::object::Codec;
use crate::{Informer, InformerOptions};

fn object(version: &str, label: &str) -> Option<Stored> {
    read(&json!({"metadata": {"name": "a", "resourceVersion": version, "labels": {"l": label}}}))
}

fn read(object: &serde_json::Value) -> Option<Stored> {
    let stop = CancellationToken::new();
    let informer = Informer::new(
        Codec::of::<ConfigMap>(),
        InformerOptions::default(),
        None,
        1,
        stop,
    );
    Some(informer.read(object.to_string().as_bytes()).unwrap())
}

fn at(version: &str) -> Option<Stored> {
    object(version, "")
}

fn delta(change: Change, old: Option<Stored>, new: Option<Stored>) -> Delta {
    Delta::new(change, old, new).unwrap()
}

/// Checks the result of coalescing deltas of one object.
fn check(deltas: Vec<Delta>, change: Change, old: u64, new: u64) {
    let mut queue = PendingDeltas::default();
    deltas.into_iter().for_each(|delta| queue.push(delta));
    assert_eq!(queue.len(), 1);
    let delta = queue.pop().unwrap();
    let version = |stored: &Option<Stored>| stored.as_ref().map_or(0, Stored::version);
    assert_eq!(
        (delta.change, version(&delta.old), version(&delta.new)),
        (change, old, new)
    );
    assert!(queue.pop().is_none());
}

#[test]
fn changes_of_one_object_become_one() {
    use Change::{Added, Deleted, Replaced, Updated};
    let d = delta;
    check(
        vec![d(Updated, at("1"), at("2")), d(Updated, at("2"), at("3"))],
        Updated,
        1,
        3,
    );
    check(
        vec![d(Added, None, at("1")), d(Updated, at("1"), at("2"))],
        Added,
        0,
        2,
    );
    // Created and deleted unseen: delivered as a deletion, for its owner.
    check(
        vec![d(Added, None, at("1")), d(Deleted, at("1"), None)],
        Deleted,
        1,
        0,
    );
    // Recreated: both objects are shown.
    check(
        vec![d(Deleted, at("1"), None), d(Added, None, at("9"))],
        Updated,
        1,
        9,
    );
    check(
        vec![d(Updated, at("1"), at("2")), d(Replaced, at("2"), at("5"))],
        Replaced,
        1,
        5,
    );
}

#[test]
fn objects_come_in_the_order_of_their_first_change() {
    let mut queue = PendingDeltas::default();
    for name in ["a", "b", "a", "c", "b"] {
        let mut delta = delta(Change::Updated, at("1"), at("2"));
        delta.key = name.into();
        queue.push(delta);
    }
    let mut order = Vec::new();
    while let Some(delta) = queue.pop() {
        order.push(delta.key.name);
        // A change that arrives while the queue is being emptied is queued again.
        if order.len() == 1 {
            let mut again = self::delta(Change::Updated, at("2"), at("3"));
            again.key = "a".into();
            queue.push(again);
        }
    }
    assert_eq!(order, ["a", "b", "c", "a"]);
}

#[test]
fn an_object_created_and_deleted_unseen_is_delivered() {
    let mut queue = PendingDeltas::default();
    queue.push(delta(Change::Updated, object("1", "x"), object("2", "y")));
    for _ in 0..100 {
        queue.push(delta(Change::Updated, object("2", "y"), object("3", "x")));
        queue.push(delta(Change::Updated, object("3", "x"), object("4", "y")));
    }
    queue.push(delta(Change::Updated, object("4", "y"), object("5", "x")));
    let delta = queue.pop().unwrap();
    assert!(delta.coalesced);
    let between = delta
        .between
        .iter()
        .map(|stored| stored.meta().label("l").unwrap().into_owned());
    assert_eq!(between.collect::<Vec<_>>(), ["y", "x"]);
}

#[test]
fn only_a_few_versions_in_between_are_kept() {
    let mut queue = PendingDeltas::default();
    for n in 0..100 {
        queue.push(delta(Change::Added, None, object("1", &n.to_string())));
    }
    assert_eq!(queue.pop().unwrap().between.len(), BETWEEN_MAX);
}

/// Returns the steps of a delta, as `created 1`, `updated 1>2?` (`?`: not the next version),
/// `deleted 2` (`?`: possibly not the last state).
fn steps(deltas: Vec<Delta>) -> Vec<String> {
    let mut queue = PendingDeltas::default();
    deltas.into_iter().for_each(|delta| queue.push(delta));
    let sure = |is_sure: bool| if is_sure { "" } else { "?" };
    let mut steps = Vec::new();
    queue.pop().unwrap().steps(|step| {
        steps.push(match step {
            Step::Created { object, .. } => format!("created {}", object.version()),
            Step::Updated { old, new, is_whole } => {
                format!(
                    "updated {}>{}{}",
                    old.version(),
                    new.version(),
                    sure(is_whole)
                )
            }
            Step::Deleted { object, is_certain } => {
                format!("deleted {}{}", object.version(), sure(is_certain))
            }
            Step::Left { object } => format!("left {}", object.version()),
        });
    });
    steps
}

#[test]
fn a_delta_is_the_events_that_it_stands_for() {
    let added = |version| delta(Change::Added, None, at(version));
    let updated = |old, new| delta(Change::Updated, at(old), at(new));
    let deleted = |old, last| Delta::deleted(at(old), at(last), true).unwrap();
    let missed = |old| Delta::deleted(at(old), None, false).unwrap();
    assert_eq!(steps(vec![added("1")]), ["created 1"]);
    assert_eq!(steps(vec![updated("1", "2")]), ["updated 1>2"]);
    assert_eq!(steps(vec![deleted("1", "2")]), ["deleted 2"]);
    assert_eq!(steps(vec![missed("1")]), ["deleted 1?"]);
    assert_eq!(
        steps(vec![added("1"), updated("1", "2")]),
        ["created 1", "updated 1>2?"]
    );
    assert_eq!(
        steps(vec![updated("1", "2"), updated("2", "3")]),
        ["updated 1>2?", "updated 2>3?"]
    );
    assert_eq!(
        steps(vec![added("1"), deleted("1", "2")]),
        ["created 1", "deleted 2"]
    );
    // The last state is known, though the versions before it are equal and not all kept.
    assert_eq!(
        steps(vec![
            updated("1", "2"),
            updated("2", "3"),
            deleted("3", "4")
        ]),
        ["updated 1>2?", "deleted 4"]
    );
}

#[test]
fn a_recreated_object_is_reported_as_deleted_and_created() {
    let with_uid = |version: &str, uid: &str| {
        let mut object = json!({"metadata": {"name": "a", "resourceVersion": version}});
        object["metadata"]["uid"] = json!(uid);
        read(&object)
    };
    let gone = Delta::deleted(with_uid("1", "u"), with_uid("2", "u"), true).unwrap();
    let again = || delta(Change::Added, None, with_uid("3", "v"));
    assert_eq!(steps(vec![gone, again()]), ["deleted 2", "created 3"]);
    // In a gap of the watch: the other UID shows that the first object was deleted.
    let replaced = delta(Change::Replaced, with_uid("1", "u"), with_uid("3", "v"));
    assert_eq!(steps(vec![replaced]), ["deleted 1?", "created 3"]);
    let came = delta(Change::Added, None, with_uid("1", "u"));
    let went = Delta::deleted(with_uid("1", "u"), with_uid("2", "u"), true).unwrap();
    assert_eq!(
        steps(vec![came, went, again()]),
        ["created 1", "deleted 2", "created 3"]
    );
}
