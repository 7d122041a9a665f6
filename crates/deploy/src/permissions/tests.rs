use serde_json::json;

use super::*;

fn role(rules: &[(&str, &[&str], &[&str])]) -> Value {
    let rules = rules.iter().map(|(resource, verbs, names)| {
        json!({"apiGroups": ["apps"], "resources": [resource], "verbs": verbs, "resourceNames": names})
    });
    json!({"rules": rules.collect::<Vec<_>>()})
}

fn paths(paths: &[&str]) -> Value {
    json!({"rules": [{"nonResourceURLs": paths, "verbs": ["get"]}]})
}

#[test]
fn permissions_are_compared_and_not_rules() {
    let one = role(&[("deployments", &["get", "list"], &[])]);
    let two = role(&[
        ("deployments", &["list"], &[]),
        ("deployments", &["get"], &[]),
    ]);
    assert_eq!(compare(&one, &two), None);
    let get = role(&[("deployments", &["get"], &[])]);
    assert_eq!(compare(&get, &one), Some(Permissions::Wider));
    assert_eq!(compare(&one, &get), Some(Permissions::Narrower));
    let sets = role(&[("statefulsets", &["get"], &[])]);
    assert_eq!(compare(&get, &sets), Some(Permissions::WiderAndNarrower));
}

#[test]
fn wildcards_and_names_limit_permissions() {
    let all = role(&[("*", &["*"], &[])]);
    let get = role(&[("deployments", &["get"], &[])]);
    let named = role(&[("deployments", &["get"], &["web"])]);
    let status = role(&[("deployments/status", &["get"], &[])]);
    let any_status = role(&[("*/status", &["get"], &[])]);
    assert_eq!(compare(&get, &all), Some(Permissions::Wider));
    assert_eq!(compare(&named, &get), Some(Permissions::Wider));
    assert_eq!(compare(&get, &named), Some(Permissions::Narrower));
    assert_eq!(compare(&status, &any_status), Some(Permissions::Wider));
    assert_eq!(
        compare(&any_status, &get),
        Some(Permissions::WiderAndNarrower)
    );
    assert_eq!(
        compare(&paths(&["/metrics"]), &paths(&["/*"])),
        Some(Permissions::Wider)
    );
    assert_eq!(
        compare(&paths(&["/metrics"]), &get),
        Some(Permissions::WiderAndNarrower)
    );
}
