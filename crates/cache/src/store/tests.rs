use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;

fn object(name: &str, uid: &str, version: &str, owner: Option<&str>) -> (ObjectKey, Entry) {
    let owner = owner.map(|uid| {
        vec![OwnerReference {
            uid: uid.into(),
            ..Default::default()
        }]
    });
    let map = ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("default".into()),
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.into()),
            owner_references: owner,
            ..Default::default()
        },
        ..Default::default()
    };
    (ObjectKey::of(&map.metadata), Entry::Object(Arc::new(map)))
}

fn put(store: &mut Store, item: (ObjectKey, Entry)) -> Option<Delta> {
    store.upsert(item.0, item.1)
}

/// `name old>new` for each delta, in versions.
fn told(deltas: &[Delta]) -> Vec<String> {
    let version = |object: &Option<AnyObject>| {
        let object = object.as_ref();
        object
            .and_then(|o| o.object_meta().resource_version.clone())
            .unwrap_or_default()
    };
    let line = |d: &Delta| format!("{} {}>{}", d.key.name, version(&d.old), version(&d.new));
    deltas.iter().map(line).collect()
}

#[test]
fn the_same_version_is_no_change() {
    let mut store = Store::default();
    assert!(put(&mut store, object("a", "u", "1", None)).is_some());
    assert!(put(&mut store, object("a", "u", "1", None)).is_none());
    let delta = put(&mut store, object("a", "u", "2", None)).unwrap();
    assert_eq!(told(&[delta]), ["a 1>2"]);
}

#[test]
fn a_relist_tells_exactly_what_was_missed() {
    let mut store = Store::default();
    for name in ["same", "changed", "deleted", "remade"] {
        put(&mut store, object(name, name, "1", None));
    }
    let list = vec![
        object("same", "same", "1", None),
        object("changed", "changed", "2", None),
        object("remade", "another", "3", None),
        object("new", "new", "4", None),
    ];
    let mut deltas = told(&store.replace(Some("default"), list, None));
    deltas[..2].sort();
    assert_eq!(
        deltas,
        [
            "deleted 1>",
            "remade 1>",
            "changed 1>2",
            "remade >3",
            "new >4"
        ]
    );
}

#[test]
fn a_relist_of_one_namespace_leaves_the_others() {
    let mut store = Store::default();
    put(&mut store, object("a", "u", "1", None));
    assert!(store.replace(Some("other"), Vec::new(), None).is_empty());
    assert_eq!(told(&store.replace(None, Vec::new(), None)), ["a 1>"]);
}

#[test]
fn the_owner_index_follows_changes_and_keeps_no_empty_sets() {
    let mut store = Store::default();
    put(&mut store, object("a", "1", "1", Some("x")));
    put(&mut store, object("b", "2", "1", Some("x")));
    assert_eq!(store.owned_by("x").count(), 2);
    put(&mut store, object("a", "1", "2", Some("y")));
    assert_eq!(
        (store.owned_by("x").count(), store.owned_by("y").count()),
        (1, 1)
    );
    put(&mut store, object("a", "1", "3", Some("y")));
    assert_eq!(store.owned_by("y").count(), 1);
    store.replace(None, Vec::new(), None);
    assert!(store.by_owner.is_empty());
}

#[test]
fn the_end_of_an_unreadable_object_tells_what_was_read_last() {
    let mut store = Store::default();
    let (key, entry) = object("a", "u", "1", Some("owner"));
    store.upsert(key.clone(), entry);
    for version in ["2", "3"] {
        let cause = serde_json::from_str::<u8>("x").unwrap_err();
        let (kind, key) = (opkit_client::Kind::of::<ConfigMap>(), key.clone());
        let unreadable = Entry::Unreadable {
            error: Arc::new(DecodeError {
                kind,
                key: key.clone(),
                cause,
            }),
            version: Version {
                uid: Some("u".into()),
                resource_version: Some(version.into()),
            },
            last: None,
        };
        store.upsert(key, unreadable);
    }
    assert_eq!(store.owned_by("owner").count(), 0);
    assert_eq!(told(&[store.remove(&key).unwrap()]), ["a 1>"]);
}
