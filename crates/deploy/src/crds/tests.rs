use super::*;

#[test]
fn a_crd_with_names_of_another_one_reports_the_message_of_the_server() {
    let condition = |type_: &str, status: &str, message: &str| {
        json!({"type": type_, "status": status, "message": message, "reason": "A",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let crd = |conditions: Value| Unstructured::from(json!({"status": {"conditions": conditions}}));
    assert_eq!(
        problem(&crd(json!([condition("Established", "True", "")]))),
        None
    );
    let refused = crd(json!([condition(
        "NamesAccepted",
        "False",
        "robots is taken"
    )]));
    assert_eq!(problem(&refused).as_deref(), Some("robots is taken"));
    assert!(problem(&Unstructured::default()).is_some());
}

#[test]
fn only_served_versions_are_listed() {
    let crd = json!({"spec": {"versions": [
        {"name": "v1alpha1", "served": false}, {"name": "v1", "served": true},
    ]}});
    assert_eq!(versions(&crd), ["v1"]);
}

#[test]
fn objects_are_listed_in_the_stored_version_if_it_is_served() {
    let crd = |stored_is_served: bool| {
        json!({"spec": {"versions": [
            {"name": "v1", "served": true, "storage": false},
            {"name": "v1alpha1", "served": stored_is_served, "storage": true},
        ]}})
    };
    assert_eq!(listed_version(&crd(true)).as_deref(), Some("v1alpha1"));
    assert_eq!(listed_version(&crd(false)).as_deref(), Some("v1"));
    assert_eq!(listed_version(&json!({"spec": {"versions": []}})), None);
}
