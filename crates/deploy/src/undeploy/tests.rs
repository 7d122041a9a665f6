use super::*;

#[test]
fn only_pods_of_the_deployment_are_waited_for() {
    let owned = |kind: &str, name: &str| {
        Unstructured::from(json!({"metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1"},
        ]}}))
    };
    assert!(is_of(&owned("Deployment", "op"), "op"));
    assert!(is_of(&owned("ReplicaSet", "op-5d4f"), "op"));
    assert!(!is_of(&owned("ReplicaSet", "op-other-5d4f"), "op"));
    assert!(!is_of(&owned("StatefulSet", "op"), "op"));
    assert!(!is_of(&Unstructured::default(), "op"));
}
