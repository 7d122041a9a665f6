use serde_json::{Value, json};

use super::{UsedNames, add_stored_version, conditions, set_default_stored_versions, set_status};

fn crd(approval: &str) -> Value {
    json!({
        "metadata": {"annotations": {"api-approved.kubernetes.io": approval}},
        "spec": {
            "group": "a.k8s.io",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "storage": false}, {"name": "v2", "storage": true}],
        },
        "status": {"storedVersions": ["v1"]},
    })
}

#[track_caller]
fn check_approval(approval: &str, status: &str, reason: &str, message: &str) {
    let mut crd = crd(approval);
    set_status(&mut crd, &UsedNames::default(), "2026-01-01T00:00:00Z");
    let condition = conditions::find(&crd, "KubernetesAPIApprovalPolicyConformant").unwrap();
    let expected = json!({
        "type": "KubernetesAPIApprovalPolicyConformant", "status": status, "reason": reason,
        "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    assert_eq!(condition, &expected);
    assert!(conditions::is_true(&crd, "Established"));
}

#[test]
fn the_approval_of_a_group_is_a_condition() {
    let url = "https://github.com/kubernetes/enhancements/pull/1";
    check_approval(
        url,
        "True",
        "ApprovedAnnotation",
        &format!("approved in {url}"),
    );
    check_approval(
        "unapproved, a test",
        "False",
        "UnapprovedAnnotation",
        "not approved: \"unapproved, a test\"",
    );
    let mut other = crd("");
    other["spec"]["group"] = json!("a.dev");
    set_status(&mut other, &UsedNames::default(), "2026-01-01T00:00:00Z");
    let policy = conditions::find(&other, "KubernetesAPIApprovalPolicyConformant");
    assert_eq!(policy, None);
}

#[test]
fn stored_versions_follow_the_storage_version() {
    let mut crd = crd("");
    set_default_stored_versions(&mut crd);
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    add_stored_version(&mut crd);
    add_stored_version(&mut crd);
    assert_eq!(crd["status"]["storedVersions"], json!(["v1", "v2"]));
    crd["status"]["storedVersions"] = json!([]);
    set_default_stored_versions(&mut crd);
    assert_eq!(crd["status"]["storedVersions"], json!(["v2"]));
}
