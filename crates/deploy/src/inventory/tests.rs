use super::*;

#[test]
fn what_others_need_is_deleted_after_them() {
    let before = |one: &str, other: &str| {
        let (first, second) = (deletion_order(one), deletion_order(other));
        assert!(first < second, "{one} before {other}");
    };
    // A webhook without its operator refuses writes.
    before("ValidatingWebhookConfiguration", "Deployment");
    // The operator may still need its permissions while it stops.
    before("Deployment", "ClusterRole");
    before("ClusterRole", "ClusterRoleBinding");
    before("ServiceAccount", "Namespace");
}
