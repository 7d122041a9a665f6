use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

use super::*;

#[test]
fn a_key_without_a_namespace_gets_the_own_namespace() {
    let key = |namespace, key: ObjectKey| {
        key_of::<ConfigMap>(namespace, key)
            .map(|key| key.to_string())
            .map_err(|error| error.to_string())
    };
    assert_eq!(key(Some("d"), "a".into()).unwrap(), "d/a");
    assert_eq!(key(Some("d"), ("e", "a").into()).unwrap(), "e/a");
    assert_eq!(key(None, ("e", "a").into()).unwrap(), "e/a");
    assert_eq!(
        key(None, "a".into()).unwrap_err(),
        "cannot read ConfigMap a without a namespace: use (namespace, name) as the key"
    );
    let cluster = key_of::<Namespace>(Some("d"), "a").unwrap();
    assert_eq!(cluster.to_string(), "a");
}

#[test]
fn a_selection_without_a_namespace_gets_the_own_namespace() {
    let namespace = |selection: Selection| selection.namespace;
    let own = selection_of::<ConfigMap>(Some("d"), ());
    assert_eq!(namespace(own).as_deref(), Some("d"));
    let other = Selection::default().namespace("e");
    let other = selection_of::<ConfigMap>(Some("d"), other);
    assert_eq!(namespace(other).as_deref(), Some("e"));
    let all = Selection::default().all_namespaces();
    assert_eq!(namespace(selection_of::<ConfigMap>(Some("d"), all)), None);
    assert_eq!(namespace(selection_of::<Namespace>(Some("d"), ())), None);
}
