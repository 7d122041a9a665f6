use super::*;

fn check(kind: &str, group: Option<&str>, version: Option<&str>, expected: Option<&str>) {
    let found = find(kind, group, version).unwrap();
    assert_eq!(found.map(|it| it.path), expected, "{kind}");
}

#[test]
fn kinds_are_found_by_name_group_and_version() {
    check("Pod", None, None, Some("api::core::v1::Pod"));
    check("Pod", Some("core"), None, Some("api::core::v1::Pod"));
    check("Pod", Some(""), Some("v1"), Some("api::core::v1::Pod"));
    check("Pod", Some("apps"), None, None);
    check(
        "Deployment",
        Some("apps"),
        None,
        Some("api::apps::v1::Deployment"),
    );
    let policy = Some("api::networking::v1::NetworkPolicy");
    check("NetworkPolicy", Some("networking.k8s.io"), None, policy);
    check("NetworkPolicy", Some("networking"), None, policy);
    check("Deployment", None, Some("v1beta1"), None);
    check("Robot", None, None, None);
}

#[test]
fn a_kind_in_several_groups_needs_a_group() {
    let error = find("Event", None, None).unwrap_err().to_string();
    assert!(error.contains("core and events.k8s.io"), "{error}");
    check("Event", Some("core"), None, Some("api::core::v1::Event"));
}

#[test]
fn a_stable_version_is_preferred() {
    check(
        "HorizontalPodAutoscaler",
        None,
        None,
        Some("api::autoscaling::v2::HorizontalPodAutoscaler"),
    );
}
