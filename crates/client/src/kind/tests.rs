use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

use super::*;

#[test]
fn paths_follow_the_scope() {
    let check = |kind: Kind, namespace, expected: &str| {
        assert_eq!(kind.path(namespace).build().as_deref(), Ok(expected));
    };
    check(
        Kind::of::<ConfigMap>(),
        Some("a"),
        "/api/v1/namespaces/a/configmaps",
    );
    check(Kind::of::<ConfigMap>(), None, "/api/v1/configmaps");
    check(Kind::of::<Namespace>(), Some("a"), "/api/v1/namespaces");
}
