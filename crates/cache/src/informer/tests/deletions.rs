//! Own deletions: deleted objects stay hidden, and existing objects are visible.

use opkit_apimachinery::shard::{ShardKey, ShardSelector};

use super::*;
use crate::store::ABSENT_MAX;

/// Returns an object that is being deleted and waits for a finalizer.
fn terminating(name: &str, uid: &str, version: &str) -> Value {
    let mut object = object(name, uid, version);
    let meta = &mut object["metadata"];
    meta["deletionTimestamp"] = "2026-11-15T14:33:48Z".into();
    meta["deletionGracePeriodSeconds"] = 0.into();
    meta["finalizers"] = json!(["example.com/late"]);
    object
}

/// Creates an informer whose list at version 10 has `one` with the name `a` at version 5.
fn with_one() -> Fed {
    let mut fed = Fed::empty();
    fed.list(&[object("a", "one", "5")], "10");
    fed
}

#[test]
fn a_deletion_is_visible_at_once_and_not_undone_by_older_events() {
    let mut fed = with_one();
    fed.observe_deletion("a", "another");
    assert!(fed.version("a").is_some(), "not the one that was deleted");
    fed.observe_deletion("a", "one");
    assert_eq!(fed.version("a"), None);
    fed.changed(&object("a", "one", "11"));
    assert_eq!(fed.version("a"), None, "events from before its deletion");
    fed.deleted(&object("a", "one", "12"));
    assert_eq!(fed.overlay_len(), 0);
    fed.changed(&object("a", "two", "13"));
    assert_eq!(
        fed.version("a").unwrap(),
        "13",
        "another object of the same name"
    );
}

#[test]
fn two_own_lives_leave_no_ghost() {
    let mut fed = with_one();
    let mut listener = fed.informer.listen();
    received(&mut listener);
    // Deleted at 12, created at 13, deleted at 16, while the watch is at 10.
    fed.observe_deletion("a", "one");
    fed.observe(&object("a", "two", "13"));
    fed.observe_deletion("a", "two");
    let observed = [
        object("a", "one", "11"),
        object("a", "two", "13"),
        object("a", "two", "15"),
    ];
    for (n, observed) in observed.iter().enumerate() {
        fed.changed(observed);
        assert_eq!(fed.version("a"), None, "{observed}");
        if n == 0 {
            fed.deleted(&object("a", "one", "12"));
        }
    }
    assert_eq!(received(&mut listener), ["Deleted a 5>"]);
    fed.deleted(&object("a", "two", "16"));
    assert_eq!(fed.overlay_len(), 0);
    fed.changed(&object("a", "three", "17"));
    assert_eq!(fed.version("a").as_deref(), Some("17"));
}

/// Responses arrive in any order, and the caller may know a later version than the cache.
#[test]
fn the_highest_version_known_counts() {
    // The response to the creation of `two` is late.
    let mut fed = with_one();
    fed.observe_deletion("a", "one");
    fed.informer
        .observe_deletion(&"a".into(), "two", Some("13"));
    fed.observe(&object("a", "two", "13"));
    fed.changed(&object("a", "one", "11"));
    fed.changed(&object("a", "two", "14"));
    assert_eq!(fed.version("a"), None);

    // The response to the deletion of `one` is late.
    let mut fed = with_one();
    fed.observe(&object("a", "two", "13"));
    fed.observe_deletion("a", "two");
    fed.informer.observe_deletion(&"a".into(), "one", Some("5"));
    fed.changed(&object("a", "one", "11"));
    assert_eq!(fed.version("a"), None);

    // The watch has passed the version that the caller knew.
    let fed = with_one();
    fed.informer.observe_deletion(&"b".into(), "b", Some("9"));
    fed.informer.observe_deletion(&"c".into(), "c", None);
    assert_eq!(fed.overlay_len(), 0);
}

/// The response to the deletion was the object, which remains because of a finalizer that neither
/// the cache nor the caller knew.
#[test]
fn a_terminating_object_stays_visible_through_events_and_lists() {
    let mut fed = with_one();
    fed.observe(&terminating("a", "one", "12"));
    assert_eq!(fed.version("a").as_deref(), Some("12"));
    fed.changed(&object("a", "one", "11"));
    assert_eq!(fed.version("a").as_deref(), Some("12"), "older events");
    fed.changed(&terminating("a", "one", "13"));
    fed.list(&[terminating("a", "one", "13")], "20");
    assert_eq!(fed.version("a").as_deref(), Some("13"));
    fed.deleted(&terminating("a", "one", "21"));
    assert_eq!(fed.version("a"), None);
}

#[test]
fn taking_the_last_finalizer_ends_the_object() {
    let mut fed = Fed::empty();
    fed.list(&[terminating("a", "one", "5")], "10");
    let mut ended = terminating("a", "one", "12");
    ended["metadata"]["finalizers"] = json!([]);
    fed.observe(&ended);
    assert_eq!(fed.version("a"), None);
    fed.changed(&terminating("a", "one", "11"));
    fed.changed(&terminating("a", "one", "12"));
    assert_eq!(fed.version("a"), None, "older events");
    fed.deleted(&terminating("a", "one", "13"));
    assert_eq!(fed.overlay_len(), 0);

    // A Namespace has no grace period and remains because of the finalizers in its spec.
    let mut fed = with_one();
    let mut stays = ended.clone();
    stays["metadata"]["deletionGracePeriodSeconds"] = Value::Null;
    fed.observe(&stays);
    assert_eq!(fed.version("a").as_deref(), Some("12"));
    fed.list(&[stays], "15");
    assert_eq!(fed.version("a").as_deref(), Some("12"));
}

#[test]
fn a_list_in_progress_does_not_undo_a_deletion() {
    let mut fed = with_one();
    fed.sink.begin_list();
    fed.observe_deletion("a", "one");
    fed.end_list(&[object("a", "one", "5")], "15");
    assert_eq!(fed.version("a"), None, "the list is older");
    fed.changed(&object("a", "one", "16"));
    assert_eq!(fed.version("a"), None);
    fed.deleted(&object("a", "one", "17"));
    assert_eq!(fed.overlay_len(), 0);

    // Reported before the deletion, or not reported any more.
    for is_listed in [true, false] {
        let mut fed = with_one();
        fed.sink.begin_list();
        if is_listed {
            let listed = object("a", "one", "11").to_string();
            fed.sink.listed(Raw::Json(listed.as_bytes())).unwrap();
        }
        fed.observe_deletion("a", "one");
        fed.end_list(&[], "15");
        assert_eq!(fed.version("a"), None, "{is_listed}");
        assert_eq!(fed.overlay_len(), usize::from(is_listed));
    }
}

/// A streaming list reports deletions as well, before the watch has reached their version.
#[test]
fn a_response_from_before_a_deletion_within_a_list_is_old() {
    let mut fed = with_one();
    fed.sink.begin_list();
    fed.deleted(&object("a", "one", "14"));
    fed.observe(&object("a", "one", "12"));
    assert_eq!(fed.version("a"), None);
    fed.end_list(&[], "15");
    assert_eq!(fed.version("a"), None);
    assert_eq!(fed.overlay_len(), 0);
}

#[test]
fn a_list_that_began_after_a_deletion_is_the_truth() {
    let mut fed = with_one();
    fed.observe_deletion("a", "one");
    assert!(fed.sink.begin_list(), "it must not be older");
    fed.end_list(&[object("a", "two", "17")], "18");
    assert_eq!(
        fed.version("a").unwrap(),
        "17",
        "another object of the same name"
    );
    assert_eq!(fed.overlay_len(), 0);
    // Restored: the versions decreased, continued, or are the same as before.
    for version in ["6", "18", "1000"] {
        let mut fed = with_one();
        fed.observe_deletion("a", "one");
        fed.list(&[object("a", "one", "5")], version);
        assert_eq!(fed.version("a").as_deref(), Some("5"), "{version}");
        assert_eq!(fed.overlay_len(), 0);
    }
}

/// A cluster that was restored to a state after the own deletion; the restored list is older.
#[test]
fn a_deletion_within_the_first_list_after_a_restore_holds() {
    let mut fed = with_one();
    fed.sink.begin_list();
    fed.observe_deletion("a", "one");
    fed.end_list(&[object("a", "one", "5")], "6");
    assert_eq!(fed.version("a"), None);
    fed.deleted(&object("a", "one", "7"));
    fed.changed(&object("a", "two", "8"));
    assert_eq!(
        fed.version("a").as_deref(),
        Some("8"),
        "below the versions of before"
    );
}

/// A watch with a selector reports an object that no longer matches as deleted; the object may
/// match again before the own deletion.
#[test]
fn leaving_the_selection_is_not_the_end() {
    let options = InformerOptions::default().labels("app=web").unwrap();
    let mut fed = Fed::with::<Pod>(options);
    fed.list(&[pod("a", "n1", "web", 1)], "5");
    fed.informer
        .observe_deletion(&("d", "a").into(), "a", Some("1"));
    fed.deleted(&pod("a", "n1", "web", 6));
    fed.changed(&pod("a", "n1", "web", 7));
    assert_eq!(fed.informer.len(), 0);
    fed.deleted(&pod("a", "n1", "web", 8));
    let mut again = pod("a", "n1", "web", 9);
    again["metadata"]["uid"] = "two".into();
    fed.changed(&again);
    assert_eq!((fed.informer.len(), fed.overlay_len()), (1, 0));
}

/// The events of two watches have no common order: one shard may still report the state before the
/// own deletion when another has reported the state after it.
#[test]
fn a_deletion_holds_until_all_shards_have_passed_it() {
    let informer = Informer::new(
        Codec::of::<ConfigMap>(),
        InformerOptions::default(),
        None,
        2,
        CancellationToken::new(),
    );
    let parts = [0, 1].map(|n| Part {
        namespace: None,
        shard: Some(ShardSelector::part(ShardKey::Uid, n, 2)),
        by_owner: false,
    });
    let uid = |part: &Part| {
        let mut uids = (0..).map(|n| format!("u{n}"));
        uids.find(|uid| part.covers(None, Some(uid))).unwrap()
    };
    let (one, two) = (uid(&parts[0]), uid(&parts[1]));
    let mut split = informer.split(Vec::from(parts.clone()), true);
    let [first, second] = split.sinks.as_mut_slice() else {
        unreachable!()
    };
    let change = |sink: &mut InformerSink, uid: &str, version: &str| {
        let text = object("a", uid, version).to_string();
        sink.changed(Raw::Json(text.as_bytes())).unwrap();
    };
    let delete = |sink: &mut InformerSink, uid: &str, version: &str| {
        let text = object("a", uid, version).to_string();
        sink.deleted(Raw::Json(text.as_bytes())).unwrap();
    };
    for sink in [&mut *first, &mut *second] {
        sink.begin_list();
        sink.end_list("4");
    }
    change(first, &one, "5");
    informer.observe_deletion(&"a".into(), &one, None);
    // Deleted at 12. Another client creates and deletes another object.
    change(second, &two, "13");
    assert_eq!(informer.stored(&"a".into()).unwrap().version(), 13);
    delete(second, &two, "14");
    change(first, &one, "11");
    assert!(informer.is_empty(), "deleted by an own request");
    delete(first, &one, "12");
    first.bookmark("20");
    assert!(informer.core().state.read().overlay.is_empty());
}

/// If the watch never catches up, objects that are not stored are remembered up to a limit.
#[test]
fn deletions_that_are_never_reported_have_a_limit() {
    let mut fed = Fed::synced();
    // An own write that the watch has not reported yet.
    fed.observe(&map("a", "18"));
    let key = |n: usize| ObjectKey::from(format!("m{n}").as_str());
    for n in 0..3 * ABSENT_MAX {
        fed.informer
            .observe_deletion(&key(n), "m", Some(&(20 + n).to_string()));
        assert!(fed.overlay_len() <= ABSENT_MAX + 1);
    }
    fed.changed(&map("a", "17"));
    assert_eq!(
        fed.version("a").as_deref(),
        Some("18"),
        "of what is there, all are"
    );
    let last = 3 * ABSENT_MAX - 1;
    fed.changed(&object(&format!("m{last}"), "m", "1000000"));
    assert_eq!(fed.informer.len(), 1, "the last is remembered");
}
