use serde_json::{Value, json};

use super::*;
use crate::{Kind, ObjectKey, Verb};

fn gone(response: &Value) -> bool {
    let kind = Kind::of::<k8s_openapi::api::core::v1::Pod>();
    let call = Call::object(Verb::Delete, &kind, &ObjectKey::from("a"));
    is_gone(&call, response.to_string().as_bytes()).unwrap()
}

#[test]
fn the_response_decides_whether_the_object_is_gone() {
    let object = |meta: Value| json!({"kind": "Pod", "metadata": meta});
    let at = "2026-11-15T14:33:48Z";
    let status = json!({"kind": "Status", "metadata": {}, "status": "Success",
        "details": {"name": "a", "uid": "u"}});
    for (response, is_gone) in [
        (status, true),
        // Kinds whose deletion returns the object: ServiceAccounts, and Pods without a node.
        (object(json!({"name": "a", "resourceVersion": "5"})), true),
        (
            object(json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": 0})),
            true,
        ),
        (
            object(json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": 30})),
            false,
        ),
        (
            object(
                json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": 0,
                "finalizers": ["foregroundDeletion"]}),
            ),
            false,
        ),
        // A Namespace exists until the finalizers in its spec are removed.
        (object(json!({"deletionTimestamp": at})), false),
    ] {
        assert_eq!(gone(&response), is_gone, "{response}");
    }
}
