use serde_json::json;

use super::*;

const PODS: &str = "pods";

fn pod(name: &str, owner: Option<&str>) -> Value {
    let owners = owner.map(|uid| json!([{"uid": uid}])).unwrap_or_default();
    json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "ownerReferences": owners}})
}

fn decode(objects: &[Arc<Stored>]) -> Vec<Arc<Value>> {
    objects
        .iter()
        .map(|object| Arc::new(object.decode()))
        .collect()
}

fn changes(store: &Store, after: u64) -> Vec<(Change, String)> {
    let (events, _) = store.events_after(PODS, after).unwrap();
    events
        .iter()
        .map(|e| (e.change, e.object.name().to_owned()))
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
    assert_eq!(events[0].object.revision(), 2);
    assert_eq!(object::revision(&events[0].object.decode()), 2);
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
        match store.list_at(PODS, Some("ns"), &start, Some(*revision), usize::MAX) {
            Ok(then) => {
                assert_eq!(
                    (decode(&then.objects), then.revision),
                    (objects.clone(), *revision)
                );
                let limited = store
                    .list_at(PODS, None, &start, Some(*revision), 3)
                    .unwrap();
                assert_eq!(
                    decode(&limited.objects),
                    decode(then.objects.get(..3).unwrap_or(&then.objects))
                );
                assert_eq!(
                    limited.objects.len() + limited.remaining,
                    then.objects.len()
                );
            }
            Err(TooOld { oldest }) => {
                assert!(*revision < oldest);
                too_old += 1;
            }
        }
    }
    assert_eq!(too_old, snapshots.len() - 1 - HISTORY);
    let after = Key::new("ns", "p5");
    let rest = store.list_at(PODS, None, &after, None, usize::MAX).unwrap();
    assert!(rest.objects.iter().all(|object| object.key() >= after));
}

#[test]
fn the_parts_of_a_stored_object_are_slices_of_its_text() {
    let store = Store::new(10);
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"text": "a \"quoted\" \u{e9}"}, "a": 1,
        "metadata": {
            "name": "a\"b", "namespace": "ns", "uid": "u-1", "labels": {"app": "x"},
            "ownerReferences": [{"uid": "o-1"}], "resourceVersion": "77",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
    });
    let committed = store.put(PODS, Expected::Absent, object.clone()).unwrap();
    let mut expected = object;
    expected["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(*committed, expected);
    let check = |stored: &Stored, expected: &Value, revision: u64| {
        assert_eq!(&stored.decode(), expected);
        assert_eq!((stored.namespace(), stored.name()), ("ns", "a\"b"));
        assert_eq!((stored.uid(), stored.revision()), ("u-1", revision));
        assert!(stored.is_deleting());
        assert_eq!(Value::from(stored.labels()), expected["metadata"]["labels"]);
        assert_eq!(
            json!(stored.owners()),
            expected["metadata"]["ownerReferences"]
        );
        let metadata: Value = serde_json::from_str(stored.metadata_json()).unwrap();
        assert_eq!(metadata, expected["metadata"]);
        let item = format!("{{{}", stored.json_from_metadata());
        let mut item: Value = serde_json::from_str(&item).unwrap();
        item["apiVersion"] = json!("v1");
        item["kind"] = json!("Pod");
        assert_eq!(&item, expected);
    };
    let stored = committed.stored().unwrap();
    check(stored, &expected, 1);
    // A longer resource version moves everything after it.
    expected["metadata"]["resourceVersion"] = json!("12345");
    check(&stored.at_revision(12_345), &expected, 12_345);
}

#[test]
fn an_object_without_fields_is_stored() {
    let store = Store::new(10);
    let committed = store.put(PODS, Expected::Absent, json!({})).unwrap();
    let stored = committed.stored().unwrap();
    assert_eq!(
        stored.decode(),
        json!({"metadata": {"resourceVersion": "1"}})
    );
    assert_eq!(
        (stored.namespace(), stored.name(), stored.uid()),
        ("", "", "")
    );
    assert!(stored.labels().is_none() && !stored.has_owners() && !stored.is_deleting());
}

#[test]
fn encodings_are_kept_within_the_budget() {
    let store = Store::new(10);
    let config_map = |name: &str| {
        let metadata = json!({"name": name, "namespace": "ns", "uid": name});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    };
    let put = |name: &str| {
        let committed = store.put("configmaps", Expected::Absent, config_map(name));
        committed.unwrap().stored().unwrap().clone()
    };
    let (one, two) = (put("one"), put("two"));
    let length = one.protobuf(&Arc::new(Budget::new(0))).unwrap().len();
    assert!(one.kept_protobuf().is_empty(), "there was no room");
    let budget = Arc::new(Budget::new(length + 1));
    let message = one.protobuf(&budget).unwrap().into_owned();
    assert_eq!(one.kept_protobuf(), message);
    assert_eq!(budget.left(), 1);
    // The second object is encoded, but not kept.
    assert_eq!(two.protobuf(&budget).unwrap().len(), length);
    assert!(two.kept_protobuf().is_empty());
    // The room is free again when the history has dropped the object.
    drop(one);
    let revision = store
        .stored("configmaps", &Key::new("ns", "one"))
        .unwrap()
        .revision();
    store
        .remove("configmaps", &Key::new("ns", "one"), revision)
        .unwrap();
    assert_eq!(budget.left(), 1, "the history has the object");
    for round in 0..10 {
        put(&format!("more-{round}"));
    }
    assert_eq!(budget.left(), length + 1);
}

#[test]
fn a_subscriber_of_a_resource_sees_only_its_writes() {
    let store = Store::new(10);
    let changed = store.subscribe_to(PODS);
    let put = |resource| store.put(resource, Expected::Absent, pod(resource, None));
    put("services").unwrap();
    assert!(!changed.has_changed().unwrap());
    assert_eq!(store.resource_revision(PODS), 0);
    put(PODS).unwrap();
    assert!(changed.has_changed().unwrap());
    assert_eq!(store.resource_revision(PODS), 2);
    assert_eq!(store.resource_revision("services"), 1);
}
