use super::*;

fn role() -> Value {
    json!({"kind": "Role", "metadata": {"namespace": "one"}, "rules": [
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
    ]})
}

fn without(group: &str, resource: &str, verb: &str) -> Value {
    let mut role = role();
    let permission = Permission {
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb: verb.to_owned(),
        namespaced: true,
    };
    withhold(&mut role, &permission);
    role["rules"].take()
}

#[test]
fn one_verb_of_one_resource_is_withheld() {
    let expected = json!([
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
    ]);
    assert_eq!(without("", "pods", "get"), expected);
    assert_eq!(
        without("apps", "deployments/scale", "patch"),
        json!([role()["rules"][0]])
    );
    assert_eq!(without("apps", "pods", "get"), role()["rules"]);
}

#[test]
fn a_review_asks_for_the_first_permission() {
    let review = first_review(&role()).unwrap();
    let attributes = &review["spec"]["resourceAttributes"];
    assert_eq!(attributes["verb"], "get");
    assert_eq!(attributes["resource"], "pods");
    assert_eq!(attributes["namespace"], "one");
    assert_eq!(first_review(&json!({"kind": "ServiceAccount"})), None);
}
