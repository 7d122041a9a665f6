//! Roles, role bindings, and the operator's ServiceAccount.

use serde_json::{Value, json};

use crate::object::document;
use crate::rule::{PolicyRule, merge};

/// RBAC manifests of an operator: its ServiceAccount, roles and role bindings.
///
/// # Examples
/// ```
/// use opkit_manifests::{PolicyRule, Rbac, yaml};
/// let rbac = Rbac::new("robot-operator", vec![PolicyRule::new("", ["pods"], ["get", "list", "watch"])]);
/// let documents = rbac.namespaces(["shops"]).leader_election(true).documents();
/// assert!(yaml(&documents)?.contains("name: robot-operator-leader-election-role"));
/// # Ok::<(), opkit_manifests::YamlError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rbac {
    operator: String,
    /// First part of the names of all objects.
    prefix: String,
    /// Existing namespace of the ServiceAccount; `None` for a namespace of the operator's own.
    service_account_namespace: Option<String>,
    rules: Vec<PolicyRule>,
    namespaces: Vec<String>,
    /// Whether an empty list of namespaces means the operator's own namespace.
    is_namespaced: bool,
    leader_election: bool,
    leader_election_namespace: Option<String>,
    is_sharded: bool,
    metrics_auth: bool,
    /// Secret with the webhook certificates, and rules for the objects with a `caBundle`.
    webhook_certificates: Option<(String, Vec<PolicyRule>)>,
}

impl Rbac {
    /// Creates the RBAC manifests of an operator that needs these rules in all namespaces.
    pub fn new(operator: impl Into<String>, rules: Vec<PolicyRule>) -> Self {
        let operator = operator.into();
        Self {
            prefix: operator.clone(),
            operator,
            service_account_namespace: None,
            rules,
            namespaces: Vec::new(),
            is_namespaced: false,
            leader_election: false,
            leader_election_namespace: None,
            is_sharded: false,
            metrics_auth: false,
            webhook_certificates: None,
        }
    }

    /// Limits the operator to these namespaces, with one Role in each. An empty list means all
    /// namespaces.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self.namespaces.sort();
        self.namespaces.dedup();
        self
    }

    /// Sets whether the operator is limited to its own namespace if no other
    /// [namespaces](Self::namespaces) are set.
    pub fn own_namespace_only(mut self, enabled: bool) -> Self {
        self.is_namespaced = enabled;
        self
    }

    /// Sets whether the operator uses leader election. Leader election adds a Role for Leases, by
    /// default in the operator's own namespace.
    pub fn leader_election(mut self, enabled: bool) -> Self {
        self.leader_election = enabled;
        self
    }

    /// Sets the namespace of the Lease for leader election. `None` means the operator's own
    /// namespace.
    pub fn leader_election_namespace(mut self, namespace: Option<String>) -> Self {
        self.leader_election_namespace = namespace;
        self
    }

    /// Sets whether the replicas of the operator divide its objects among them. The Role of
    /// [leader election](Self::leader_election) then has the permissions for one Lease per replica.
    pub fn sharded(mut self, enabled: bool) -> Self {
        self.is_sharded = enabled;
        self
    }

    /// Sets whether clients of the metrics endpoint are authorized by the cluster. If so, adds a
    /// ClusterRole that lets the operator create token and access reviews, and a ClusterRole for
    /// clients that read the metrics.
    pub fn metrics_auth(mut self, enabled: bool) -> Self {
        self.metrics_auth = enabled;
        self
    }

    /// Adds the permissions of an operator that makes its own webhook certificates: on `secret` in
    /// its own namespace, and `rules` for the objects whose `caBundle` it writes.
    pub fn webhook_certificates(
        mut self,
        secret: impl Into<String>,
        rules: Vec<PolicyRule>,
    ) -> Self {
        self.webhook_certificates = Some((secret.into(), rules));
        self
    }

    /// Sets names for one of several instances of the operator in one cluster: the names of all
    /// objects start with `prefix` instead of the operator's name, and the ServiceAccount is in
    /// `namespace`, which must exist.
    pub fn instance(mut self, prefix: impl Into<String>, namespace: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self.service_account_namespace = Some(namespace.into());
        self
    }

    /// Returns the namespace in which the operator runs: the namespace of its
    /// [instance](Self::instance), or the name of the operator followed by `-system`.
    pub fn own_namespace(&self) -> String {
        match &self.service_account_namespace {
            Some(namespace) => namespace.clone(),
            None => format!("{}-system", self.operator),
        }
    }

    /// Returns the manifests: the operator's namespace (not for an [instance](Self::instance)) and
    /// ServiceAccount, the roles, and the role bindings.
    pub fn documents(&self) -> Vec<Value> {
        let own = self.own_namespace();
        let mut documents = Vec::new();
        if self.service_account_namespace.is_none() {
            documents.push(self.document("v1", "Namespace", &own, None));
        }
        let account = self.service_account_name();
        documents.push(self.document("v1", "ServiceAccount", &account, Some(&own)));
        let namespaces = match self.is_namespaced && self.namespaces.is_empty() {
            true => vec![own.clone()],
            false => self.namespaces.clone(),
        };
        let is_limited = !namespaces.is_empty();
        let (namespaced, cluster): (Vec<_>, Vec<_>) =
            (self.rules.iter().cloned()).partition(|rule| rule.namespaced && is_limited);
        self.grant(&mut documents, "manager", None, &cluster);
        for namespace in &namespaces {
            self.grant(&mut documents, "manager", Some(namespace), &namespaced);
        }
        if self.leader_election {
            // RBAC cannot limit `create` to a resource name.
            let group = "coordination.k8s.io";
            let verbs: &[&str] = match self.is_sharded {
                true => &["create", "delete", "get", "list", "update", "watch"],
                false => &["create", "get", "update"],
            };
            let leases = PolicyRule::new(group, ["leases"], verbs.iter().copied());
            let lease_namespace = self.leader_election_namespace.as_ref().unwrap_or(&own);
            self.grant(
                &mut documents,
                "leader-election",
                Some(lease_namespace),
                &[leases],
            );
        }
        if let Some((secret, rules)) = &self.webhook_certificates {
            let verbs = ["get", "list", "update", "watch"];
            let secrets = [
                // RBAC cannot limit `create` to a resource name.
                PolicyRule::new("", ["secrets"], ["create"]),
                PolicyRule::new("", ["secrets"], verbs).named([secret]),
            ];
            let what = "webhook-certificates";
            self.grant(&mut documents, what, Some(&own), &secrets);
            self.grant(&mut documents, what, None, rules);
        }
        if self.metrics_auth {
            let reviews = [
                PolicyRule::new("authentication.k8s.io", ["tokenreviews"], ["create"]),
                PolicyRule::new("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
            ];
            self.grant(&mut documents, "metrics-auth", None, &reviews);
            let name = format!("{}-metrics-reader", self.prefix);
            let mut reader = self.document(RBAC, "ClusterRole", &name, None);
            set(
                &mut reader,
                "rules",
                json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            );
            documents.push(reader);
        }
        documents
    }

    /// Returns the name of the operator's ServiceAccount.
    pub fn service_account_name(&self) -> String {
        format!("{}-controller-manager", self.prefix)
    }

    /// Adds a role with `rules` and the role binding to the operator's ServiceAccount. Adds nothing
    /// if `rules` is empty.
    fn grant(
        &self,
        documents: &mut Vec<Value>,
        what: &str,
        namespace: Option<&str>,
        rules: &[PolicyRule],
    ) {
        if rules.is_empty() {
            return;
        }
        let (role, binding) = match namespace {
            Some(_) => ("Role", "RoleBinding"),
            None => ("ClusterRole", "ClusterRoleBinding"),
        };
        let name = format!("{}-{what}-role", self.prefix);
        let rules: Vec<_> = merge(rules).iter().map(PolicyRule::document).collect();
        let mut granted = self.document(RBAC, role, &name, namespace);
        set(&mut granted, "rules", json!(rules));
        let mut bound = self.document(RBAC, binding, &format!("{name}binding"), namespace);
        let reference =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name});
        set(&mut bound, "roleRef", reference);
        let (account, own) = (self.service_account_name(), self.own_namespace());
        set(
            &mut bound,
            "subjects",
            json!([{"kind": "ServiceAccount", "name": account, "namespace": own}]),
        );
        documents.extend([granted, bound]);
    }

    fn document(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        namespace: Option<&str>,
    ) -> Value {
        document(&self.operator, api_version, kind, name, namespace)
    }
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn set(document: &mut Value, field: &str, value: Value) {
    if let Some(fields) = document.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
