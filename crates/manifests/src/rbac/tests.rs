use super::*;

fn rules() -> Vec<PolicyRule> {
    vec![
        PolicyRule::new("", ["pods"], ["get", "list", "watch"]),
        PolicyRule::new("", ["nodes"], ["get"]).cluster_scoped(),
    ]
}

/// Returns kind, namespace and name of each document.
fn names(documents: &[Value]) -> Vec<String> {
    let name = |document: &Value| {
        let at = |pointer| document.pointer(pointer).and_then(Value::as_str);
        let (kind, name) = (at("/kind").unwrap(), at("/metadata/name").unwrap());
        match at("/metadata/namespace") {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    };
    documents.iter().map(name).collect()
}

#[test]
fn an_operator_of_all_namespaces_has_a_cluster_role() {
    let documents = Rbac::new("robot", rules()).documents();
    assert_eq!(
        names(&documents),
        [
            "Namespace robot-system",
            "ServiceAccount robot-system/robot-controller-manager",
            "ClusterRole robot-manager-role",
            "ClusterRoleBinding robot-manager-rolebinding",
        ]
    );
    let rules = documents[2]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(documents[3]["roleRef"]["name"], "robot-manager-role");
    assert_eq!(documents[3]["subjects"][0]["namespace"], "robot-system");
}

#[test]
fn replicas_that_divide_objects_list_and_delete_leases() {
    let rbac = Rbac::new("robot", Vec::new()).leader_election(true);
    let verbs = |rbac: &Rbac| rbac.documents()[2]["rules"][0]["verbs"].clone();
    assert_eq!(verbs(&rbac), json!(["create", "get", "update"]));
    let all = json!(["create", "delete", "get", "list", "update", "watch"]);
    assert_eq!(verbs(&rbac.sharded(true)), all);
}

#[test]
fn an_operator_of_some_namespaces_has_a_role_in_each() {
    let rbac = Rbac::new("robot", rules()).namespaces(["b", "a", "b"]);
    let documents = rbac.leader_election(true).metrics_auth(true).documents();
    assert_eq!(
        names(&documents)[2..],
        [
            "ClusterRole robot-manager-role",
            "ClusterRoleBinding robot-manager-rolebinding",
            "Role a/robot-manager-role",
            "RoleBinding a/robot-manager-rolebinding",
            "Role b/robot-manager-role",
            "RoleBinding b/robot-manager-rolebinding",
            "Role robot-system/robot-leader-election-role",
            "RoleBinding robot-system/robot-leader-election-rolebinding",
            "ClusterRole robot-metrics-auth-role",
            "ClusterRoleBinding robot-metrics-auth-rolebinding",
            "ClusterRole robot-metrics-reader",
        ]
    );
    // The ClusterRole has only cluster-scoped resources.
    assert_eq!(documents[2]["rules"].as_array().unwrap().len(), 1);
    assert_eq!(documents[4]["rules"][0]["resources"], json!(["pods"]));
}
