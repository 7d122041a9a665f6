use opkit_apimachinery::differences::differences;
use serde_json::json;

use super::*;

fn crd(maximum: u64) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.opkit.dev"},
        "spec": {"scope": "Namespaced", "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "size": {"type": "integer", "maximum": maximum},
            }}},
        }]},
    })
}

fn change(before: &Value, after: &Value) -> ObjectChange {
    ObjectChange::of_fields(before, after, differences(before, after)).unwrap()
}

#[test]
fn the_change_of_a_crd_has_a_verdict() {
    let smaller = change(&crd(100), &crd(50)).crd.unwrap();
    assert_eq!(smaller.verdict, Verdict::Breaking);
    assert_eq!(smaller.problems[0].field, ".size");
    let larger = change(&crd(50), &crd(100)).crd.unwrap();
    assert_eq!(
        (larger.verdict, larger.problems),
        (Verdict::Compatible, vec![])
    );
}

#[test]
fn the_change_of_a_role_has_an_effect_on_permissions() {
    let role = |verbs: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "a"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]})
    };
    let wider = change(&role(&["get"]), &role(&["get", "patch"]));
    assert_eq!(wider.permissions, Some(Permissions::Wider));
    assert_eq!(wider.crd, None);
    assert_eq!(wider.fields[0].to_string(), r#".rules[0].verbs + "patch""#);
}
