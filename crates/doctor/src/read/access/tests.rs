use super::*;

#[test]
fn verbs_of_a_resource_are_grouped() {
    let permission = |group: &str, resource: &str, verb: &str| Permission {
        namespace: None,
        group: group.to_owned(),
        resource: resource.to_owned(),
        verb: verb.to_owned(),
    };
    let denied = grouped(
        [
            permission("apps", "deployments", "patch"),
            permission("", "secrets", "get"),
            permission("apps", "deployments", "create"),
            permission("apps", "deployments/scale", "patch"),
        ]
        .into_iter(),
    );
    let denied: Vec<_> = denied
        .iter()
        .map(|it| format!("{} {}", it.verbs.join(","), it.resource))
        .collect();
    assert_eq!(
        denied,
        [
            "get secrets",
            "create,patch deployments.apps",
            "patch deployments.apps/scale"
        ]
    );
}

#[test]
fn the_permissions_of_roles_are_needed_to_grant_them() {
    let mut manifests = OperatorManifests::new("op", "1", "ops");
    manifests.objects.push(
        json!({"kind": "Role", "metadata": {"namespace": "ops"}, "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"]},
        ]}),
    );
    let granted = granted(&manifests);
    let granted: Vec<_> = granted.iter().map(|it| it.resource.as_str()).collect();
    assert_eq!(granted, ["pods", "pods/log"]);
}
