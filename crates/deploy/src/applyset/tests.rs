use super::*;

/// The id that `kubectl apply --applyset=secret/op-applyset -n op-system` computes.
#[test]
fn the_id_is_that_of_the_kep() {
    let set = ApplySet::new("op", "op-system");
    assert_eq!(set.parent_name(), "op-applyset");
    let hash = "_uZQsUejyYMRY5mDWwoH4O2h2QCJpllZRlnyO093jZ4";
    assert_eq!(set.id(), format!("applyset-{hash}-v1"));
}

#[test]
fn a_parent_is_read_as_it_was_written() {
    let mut set = ApplySet::new("op", "op-system");
    set.add(&ObjectReference::of(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "op", "namespace": "op-system"},
    })));
    set.add(&ObjectReference::of(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "op", "namespace": "shops"},
    })));
    set.add(&ObjectReference::of(&json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "op-system"},
    })));
    set.crds.insert("robots.opkit.dev".to_owned());
    set.runtime_objects.push(json!({"kind": "Lease"}));
    let parent = set.parent();
    let annotations = &parent["metadata"]["annotations"];
    let kinds = "Deployment.apps,Namespace,Role.rbac.authorization.k8s.io";
    assert_eq!(annotations[CONTAINS_ANNOTATION], kinds);
    assert_eq!(
        annotations[NAMESPACES_ANNOTATION], "shops",
        "without that of the parent"
    );
    assert_eq!(ApplySet::read("op", "op-system", &parent), set);
}
