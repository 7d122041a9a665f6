use super::*;

#[test]
fn rules_are_merged_by_resource_and_by_verbs() {
    let rules = [
        PolicyRule::new("apps", ["deployments"], ["list", "get"]),
        PolicyRule::new("apps", ["statefulsets"], ["get", "list", "watch"]),
        PolicyRule::new("apps", ["deployments"], ["watch"]),
        PolicyRule::new("", ["nodes"], ["get"]).cluster_scoped(),
        PolicyRule::new("", ["configmaps"], ["get"]).named(["one"]),
    ];
    let merged = merge(&rules);
    let expected = [
        PolicyRule::new("", ["configmaps"], ["get"]).named(["one"]),
        PolicyRule::new("", ["nodes"], ["get"]).cluster_scoped(),
        PolicyRule::new(
            "apps",
            ["deployments", "statefulsets"],
            ["get", "list", "watch"],
        ),
    ];
    assert_eq!(merged, expected);
    assert_eq!(merge(&merged), merged);
}
