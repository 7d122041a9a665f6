use futures::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::Event;

fn entry(name: &str, version: &str) -> (ObjectKey, Entry) {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map.metadata.resource_version = Some(version.into());
    (name.into(), Entry::Object(Arc::new(map)))
}

#[tokio::test(start_paused = true)]
async fn a_late_listener_gets_a_snapshot_and_then_changes() {
    let informer = Informer::new(Codec::of::<ConfigMap>(), 1);
    let mut early = informer.listen();
    informer.replace(None, vec![entry("a", "1")], "1", true);
    let mut late = informer.listen();
    for listener in [&mut early, &mut late] {
        let Event::Delta(delta) = listener.recv().await else {
            panic!()
        };
        assert!(delta.initial && delta.old.is_none());
        assert!(matches!(listener.recv().await, Event::Synced));
    }
    let (key, changed) = entry("a", "2");
    informer.take(None, Change::Upsert(key, changed), None);
    for listener in [&mut early, &mut late] {
        let Event::Delta(delta) = listener.recv().await else {
            panic!()
        };
        assert!(!delta.initial && delta.old.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn synced_when_every_namespace_is_listed() {
    let informer = Informer::new(Codec::of::<ConfigMap>(), 2);
    informer.replace(Some("a"), Vec::new(), "1", true);
    assert!(!informer.is_synced());
    informer.replace(Some("b"), Vec::new(), "1", true);
    informer.wait_for_sync().await;
}

#[test]
fn a_dropped_listener_is_forgotten() {
    let informer = Informer::new(Codec::of::<ConfigMap>(), 1);
    drop(informer.listen());
    let (key, changed) = entry("a", "1");
    informer.take(None, Change::Upsert(key, changed), None);
    assert!(informer.shared.state.read().listeners.is_empty());
}

fn object(name: &str, version: &str) -> AnyObject {
    match entry(name, version).1 {
        Entry::Object(object) => object,
        Entry::Unreadable { .. } => unreachable!(),
    }
}

fn version_of(informer: &Informer, name: &str) -> Option<String> {
    let object = informer.get(&name.into()).unwrap();
    object.and_then(|object| object.object_meta().resource_version.clone())
}

/// What the watch tells, at the version of the object.
fn tell(informer: &Informer, name: &str, version: &str, deleted: bool) {
    let (key, entry) = entry(name, version);
    let change = if deleted {
        Change::Remove(key, None)
    } else {
        Change::Upsert(key, entry)
    };
    informer.take(None, change, Some(version));
}

fn synced() -> Informer {
    let informer = Informer::new(Codec::of::<ConfigMap>(), 1);
    informer.replace(None, vec![entry("a", "5")], "10", true);
    informer
}

#[test]
fn our_own_write_is_seen_at_once_and_not_undone_by_older_news() {
    let informer = synced();
    informer.observe(object("a", "20"));
    assert_eq!(version_of(&informer, "a").unwrap(), "20");
    tell(&informer, "a", "15", false);
    assert_eq!(version_of(&informer, "a").unwrap(), "20");
    tell(&informer, "a", "16", true);
    assert_eq!(
        version_of(&informer, "a").unwrap(),
        "20",
        "an earlier life was deleted"
    );
    tell(&informer, "a", "20", false);
    tell(&informer, "a", "21", false);
    assert_eq!(version_of(&informer, "a").unwrap(), "21");
}

#[test]
fn a_write_that_the_watch_has_passed_does_not_come_back() {
    let informer = synced();
    tell(&informer, "a", "21", true);
    informer.observe(object("a", "20"));
    assert_eq!(version_of(&informer, "a"), None);
}

#[test]
fn a_write_that_was_undone_while_disconnected_is_told_as_deleted() {
    let informer = synced();
    informer.observe(object("new", "20"));
    assert!(version_of(&informer, "new").is_some());
    let mut listener = informer.listen();
    informer.replace(None, vec![entry("a", "5")], "30", false);
    assert_eq!(version_of(&informer, "new"), None);
    let mut deleted = 0;
    while let Some(event) = listener.recv().now_or_never() {
        deleted += u32::from(matches!(event, Event::Delta(delta) if delta.new.is_none()));
    }
    assert_eq!(deleted, 1);
}

#[test]
fn a_restored_cluster_with_older_versions_is_believed() {
    let informer = synced();
    informer.observe(object("a", "20"));
    informer.replace(None, vec![entry("a", "3")], "4", false);
    assert_eq!(version_of(&informer, "a").unwrap(), "3");
    tell(&informer, "a", "6", false);
    assert_eq!(version_of(&informer, "a").unwrap(), "6");
}

fn with_uid(uid: &str, version: &str) -> (ObjectKey, Entry) {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".into());
    map.metadata.uid = Some(uid.into());
    map.metadata.resource_version = Some(version.into());
    ("a".into(), Entry::Object(Arc::new(map)))
}

#[test]
fn our_own_deletion_is_seen_at_once_and_not_undone_by_older_news() {
    let informer = Informer::new(Codec::of::<ConfigMap>(), 1);
    informer.replace(None, vec![with_uid("one", "5")], "10", true);
    let upsert = |uid: &str, version: &str| {
        let (key, entry) = with_uid(uid, version);
        informer.take(None, Change::Upsert(key, entry), Some(version));
    };
    informer.observe_deletion(&"a".into(), "another");
    assert!(
        version_of(&informer, "a").is_some(),
        "not the one that was deleted"
    );
    informer.observe_deletion(&"a".into(), "one");
    assert_eq!(version_of(&informer, "a"), None);
    upsert("one", "11");
    assert_eq!(version_of(&informer, "a"), None, "news from before its end");
    informer.take(
        None,
        Change::Remove("a".into(), Some("one".into())),
        Some("12"),
    );
    upsert("two", "13");
    assert_eq!(version_of(&informer, "a").unwrap(), "13", "a new life");
}

#[test]
fn a_list_that_was_on_its_way_does_not_undo_our_writes() {
    let informer = synced();
    informer.observe(object("new", "20"));
    informer.observe(object("a", "21"));
    let mut listener = informer.listen();
    while listener.recv().now_or_never().is_some() {}
    // Taken between what was seen (10) and our writes.
    informer.replace(None, vec![entry("a", "5"), entry("b", "14")], "15", false);
    assert_eq!(version_of(&informer, "a").as_deref(), Some("21"));
    assert_eq!(version_of(&informer, "new").as_deref(), Some("20"));
    let Some(Event::Delta(delta)) = listener.recv().now_or_never() else {
        panic!()
    };
    assert_eq!(delta.key.name, "b");
    assert!(listener.recv().now_or_never().is_none(), "nothing else");
    tell(&informer, "new", "20", false);
    tell(&informer, "new", "22", true);
    assert_eq!(
        version_of(&informer, "new"),
        None,
        "the watch has caught up"
    );
}

#[test]
fn a_list_that_was_on_its_way_does_not_undo_our_deletion() {
    let informer = Informer::new(Codec::of::<ConfigMap>(), 1);
    informer.replace(None, vec![with_uid("one", "5")], "10", true);
    informer.observe_deletion(&"a".into(), "one");
    informer.replace(None, vec![with_uid("one", "5")], "15", false);
    assert_eq!(version_of(&informer, "a"), None);
    informer.replace(None, vec![with_uid("two", "17")], "18", false);
    assert_eq!(version_of(&informer, "a").unwrap(), "17", "a new life");
    informer.replace(None, vec![with_uid("one", "5")], "6", false);
    assert_eq!(version_of(&informer, "a").unwrap(), "5", "restored");
}
