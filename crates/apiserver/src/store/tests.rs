use serde_json::json;

use super::*;

const PODS: &str = "pods";

fn pod(name: &str, owner: Option<&str>) -> Value {
    let owners = owner.map(|uid| json!([{"uid": uid}])).unwrap_or_default();
    json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "ownerReferences": owners}})
}

fn changes(store: &Store, after: u64) -> Vec<(Change, String)> {
    let (events, _) = store.events_after(PODS, after).unwrap();
    events
        .iter()
        .map(|e| (e.change, object::name(&e.object).to_owned()))
        .collect()
}

#[test]
fn a_write_needs_the_present_revision() {
    let store = Store::new(10);
    let created = store.put(PODS, Expected::Absent, pod("a", None)).unwrap();
    assert_eq!(object::revision(&created), 1);
    assert_eq!(
        store
            .put(PODS, Expected::Absent, pod("a", None))
            .unwrap_err(),
        CommitError::Exists
    );
    store
        .put(PODS, Expected::Revision(1), pod("a", None))
        .unwrap();
    let stale = store
        .put(PODS, Expected::Revision(1), pod("a", None))
        .unwrap_err();
    assert_eq!(stale, CommitError::Moved);
    let missing = store
        .put(PODS, Expected::Revision(1), pod("b", None))
        .unwrap_err();
    assert_eq!(missing, CommitError::Missing);
}

#[test]
fn a_deleted_event_has_the_revision_of_the_deletion() {
    let store = Store::new(10);
    store.put(PODS, Expected::Absent, pod("a", None)).unwrap();
    store.remove(PODS, &Key::new("ns", "a"), 1).unwrap();
    let (events, read_up_to) = store.events_after(PODS, 1).unwrap();
    assert_eq!(read_up_to, 2);
    assert_eq!(object::revision(&events[0].object), 2);
    assert_eq!(
        changes(&store, 0),
        [(Change::Added, "a".into()), (Change::Deleted, "a".into())]
    );
}

#[test]
fn a_cursor_before_the_ring_is_too_old() {
    let store = Store::new(2);
    for name in ["a", "b", "c"] {
        store.put(PODS, Expected::Absent, pod(name, None)).unwrap();
    }
    assert_eq!(
        store.events_after(PODS, 0).unwrap_err(),
        TooOld { oldest: 1 }
    );
    assert_eq!(changes(&store, 1).len(), 2);
}

#[test]
fn dependents_follow_owner_references() {
    let store = Store::new(10);
    store
        .put(PODS, Expected::Absent, pod("owner", None))
        .unwrap();
    store
        .put(PODS, Expected::Absent, pod("child", Some("uid-owner")))
        .unwrap();
    let names = |store: &Store| -> Vec<String> {
        store
            .dependents("uid-owner")
            .iter()
            .map(|(_, o)| object::name(o).to_owned())
            .collect()
    };
    assert_eq!(names(&store), ["child"]);
    store
        .put(PODS, Expected::Revision(2), pod("child", None))
        .unwrap();
    assert!(names(&store).is_empty());
    assert!(store.by_uid("uid-child").is_some());
}

#[test]
fn a_past_list_is_the_list_of_that_time() {
    const HISTORY: usize = 40;
    let mut state = 7_u64;
    let mut random = move |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let store = Store::new(HISTORY);
    let mut snapshots = vec![(0, Vec::new())];
    for _ in 0..200 {
        let name = format!("p{}", random(12));
        let key = Key::new("ns", name.as_str());
        match store.get(PODS, &key) {
            None => drop(store.put(PODS, Expected::Absent, pod(&name, None)).unwrap()),
            Some(present) => {
                let revision = object::revision(&present);
                if random(2) == 0 {
                    drop(store.remove(PODS, &key, revision).unwrap());
                } else {
                    let expected = Expected::Revision(revision);
                    drop(store.put(PODS, expected, pod(&name, None)).unwrap());
                }
            }
        }
        let (objects, revision) = store.list(PODS, None);
        snapshots.push((revision, objects));
    }
    let start = Key::new("ns", "");
    let mut too_old = 0;
    for (revision, objects) in &snapshots {
        match store.list_at(PODS, Some("ns"), &start, Some(*revision)) {
            Ok((then, at)) => assert_eq!((&then, &at), (objects, revision)),
            Err(TooOld { oldest }) => {
                assert!(*revision < oldest);
                too_old += 1;
            }
        }
    }
    assert_eq!(too_old, snapshots.len() - 1 - HISTORY);
    let after = Key::new("ns", "p5");
    let (rest, _) = store.list_at(PODS, None, &after, None).unwrap();
    assert!(rest.iter().all(|object| Key::of(object) >= after));
}
