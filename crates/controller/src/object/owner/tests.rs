use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

use super::*;

fn owner(kind: Kind, namespace: Option<&str>) -> Owner {
    let meta = ObjectMeta {
        name: Some("one".into()),
        namespace: namespace.map(Into::into),
        uid: Some("u-1".into()),
        ..Default::default()
    };
    Owner::of(kind, &meta)
}

/// Returns a child in `namespace` with a controller reference to the ConfigMap `one`, changed by
/// `change`.
fn child(namespace: Option<&str>, change: impl FnOnce(&mut OwnerReference)) -> ObjectMeta {
    let mut reference = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "one".into(),
        uid: "u-1".into(),
        controller: Some(true),
        ..Default::default()
    };
    change(&mut reference);
    ObjectMeta {
        name: Some("child".into()),
        namespace: namespace.map(Into::into),
        owner_references: Some(vec![reference]),
        ..Default::default()
    }
}

#[test]
fn a_child_references_its_owner_completely_and_is_in_its_namespace() {
    let map = owner(Kind::of::<ConfigMap>(), Some("d"));
    let check = |child: ObjectMeta, expected: bool, what: &str| {
        assert_eq!(map.controls(&Meta::from(&child)), expected, "{what}");
    };
    check(child(Some("d"), |_| ()), true, "a child");
    check(child(Some("evil"), |_| ()), false, "in another namespace");
    check(child(None, |_| ()), false, "cluster-scoped");
    let d = Some("d");
    check(child(d, |it| it.uid = "u-2".into()), false, "UID");
    check(child(d, |it| it.name = "two".into()), false, "name");
    check(child(d, |it| it.kind = "Secret".into()), false, "kind");
    let group = |it: &mut OwnerReference| it.api_version = "apps/v1".into();
    check(child(d, group), false, "group");
    let version = |it: &mut OwnerReference| it.api_version = "v2".into();
    check(child(d, version), true, "another version");
    check(child(d, |it| it.controller = None), false, "no controller");
}

#[test]
fn a_cluster_scoped_owner_has_children_in_any_namespace() {
    let namespace = owner(Kind::of::<Namespace>(), None);
    let of = |it: &mut OwnerReference| it.kind = "Namespace".into();
    for at in [None, Some("d"), Some("e")] {
        assert!(namespace.controls(&Meta::from(&child(at, of))), "{at:?}");
    }
}

#[test]
fn a_deleted_object_has_no_children() {
    let kind = Arc::new(Kind::of::<ConfigMap>());
    let deleted = Owner::deleted(kind, Request::from(("d", "one")));
    let forged = child(Some("d"), |it| it.uid = String::new());
    assert!(!deleted.controls(&Meta::from(&forged)));
}
