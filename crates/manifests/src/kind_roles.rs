//! Roles for the users of a kind: admin, editor and viewer, as kubebuilder prints them.

use serde_json::{Value, json};

use crate::object::{document, text};

/// Returns the roles admin, editor and viewer of the kind of a CRD. There are no bindings to them.
/// The roles are ClusterRoles, or Roles in `namespace`.
pub(crate) fn kind_roles(operator: &str, crd: &Value, namespace: Option<&str>) -> Vec<Value> {
    let kind = text(crd, "/spec/names/kind").to_lowercase();
    let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
    let has_status = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .is_some_and(|versions| {
            let mut versions = versions.iter();
            versions.any(|version| version.pointer("/subresources/status").is_some())
        });
    let roles: [(&str, &[&str]); 3] = [
        ("admin", &["*"]),
        (
            "editor",
            &[
                "create", "delete", "get", "list", "patch", "update", "watch",
            ],
        ),
        ("viewer", &["get", "list", "watch"]),
    ];
    let sort = match namespace {
        Some(_) => "Role",
        None => "ClusterRole",
    };
    let role = |(name, verbs): (&str, &[&str])| {
        let mut rules = vec![json!({
            "apiGroups": [group], "resources": [plural], "verbs": verbs,
        })];
        if has_status {
            let status = format!("{plural}/status");
            rules.push(json!({"apiGroups": [group], "resources": [status], "verbs": ["get"]}));
        }
        let name = format!("{operator}-{kind}-{name}-role");
        let api = "rbac.authorization.k8s.io/v1";
        let mut role = document(operator, api, sort, &name, namespace);
        if let Some(fields) = role.as_object_mut() {
            fields.insert("rules".to_owned(), json!(rules));
        }
        role
    };
    roles.into_iter().map(role).collect()
}
