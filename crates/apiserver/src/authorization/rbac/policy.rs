//! The parsed Roles, ClusterRoles and bindings of a server, indexed by subject.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Rule;
use crate::authentication::{Identity, service_account_user};
use crate::object;

/// The rules of a role, or the error that the role does not exist.
type RoleRules = Result<Arc<[Rule]>, String>;

/// All Roles, ClusterRoles and bindings of a server.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    cluster_roles: HashMap<String, Arc<[Rule]>>,
    /// Rules of the Roles, by namespace and name.
    roles: HashMap<(String, String), Arc<[Rule]>>,
    cluster_bindings: Bindings,
    /// Bindings of a namespace, by namespace.
    bindings: HashMap<String, Bindings>,
}

/// Bindings of one scope, sorted by name.
#[derive(Debug, Default)]
struct Bindings {
    list: Vec<Binding>,
    /// Indexes in `list` of the bindings that name a user or a ServiceAccount, by user name.
    by_user: HashMap<String, Vec<usize>>,
    /// Indexes in `list` of the bindings that name a group, by group.
    by_group: HashMap<String, Vec<usize>>,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug)]
struct Binding {
    name: String,
    /// Namespace of a RoleBinding; empty for a ClusterRoleBinding.
    namespace: String,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
    rules: RoleRules,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    /// Namespace of a ServiceAccount.
    namespace: String,
}

/// A binding that applies to a user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant<'a>(&'a Binding);

impl Policy {
    pub(super) fn parse(
        cluster_roles: &[Arc<Value>],
        cluster_bindings: &[Arc<Value>],
        roles: &[Arc<Value>],
        bindings: &[Arc<Value>],
    ) -> Self {
        let mut policy = Self::default();
        for role in cluster_roles {
            let name = object::name(role).to_owned();
            policy
                .cluster_roles
                .insert(name, Rule::of_role(role).into());
        }
        for role in roles {
            let key = (
                object::namespace(role).to_owned(),
                object::name(role).to_owned(),
            );
            policy.roles.insert(key, Rule::of_role(role).into());
        }
        for binding in cluster_bindings {
            let binding = policy.parse_binding(binding, "");
            policy.cluster_bindings.add(binding);
        }
        for binding in bindings {
            let namespace = object::namespace(binding);
            let parsed = policy.parse_binding(binding, namespace);
            let scope = policy.bindings.entry(namespace.to_owned());
            scope.or_default().add(parsed);
        }
        policy
    }

    fn parse_binding(&self, binding: &Value, namespace: &str) -> Binding {
        let role_kind = object::text(binding, &["roleRef", "kind"]);
        let role_name = object::text(binding, &["roleRef", "name"]);
        let subjects = object::items(binding, &["subjects"]).iter();
        let subjects = subjects.map(|subject| Subject {
            kind: object::text(subject, &["kind"]).to_owned(),
            name: object::text(subject, &["name"]).to_owned(),
            namespace: object::text(subject, &["namespace"]).to_owned(),
        });
        Binding {
            name: object::name(binding).to_owned(),
            namespace: namespace.to_owned(),
            role_kind: role_kind.to_owned(),
            role_name: role_name.to_owned(),
            subjects: subjects.collect(),
            rules: self.role_rules(role_kind, role_name, namespace),
        }
    }

    /// Returns the rules of the role that a binding in `namespace` refers to; the namespace is
    /// empty for a ClusterRoleBinding.
    pub(crate) fn role_rules(&self, kind: &str, name: &str, namespace: &str) -> RoleRules {
        let (resource, found) = match kind {
            "ClusterRole" => ("clusterrole", self.cluster_roles.get(name)),
            "Role" => {
                let key = (namespace.to_owned(), name.to_owned());
                ("role", self.roles.get(&key))
            }
            kind => return Err(format!("unsupported role reference kind: {kind:?}")),
        };
        let found = found.cloned();
        found.ok_or_else(|| format!("{resource}.rbac.authorization.k8s.io {name:?} not found"))
    }

    /// Returns the bindings that apply to a user in a namespace: first ClusterRoleBindings, then
    /// RoleBindings of the namespace. An empty namespace means the cluster scope.
    pub(super) fn grants<'a>(
        &'a self,
        user: &'a Identity,
        namespace: &str,
    ) -> impl Iterator<Item = Grant<'a>> {
        let local = self.bindings.get(namespace);
        let scopes = [Some(&self.cluster_bindings), local].into_iter().flatten();
        scopes.flat_map(|bindings| bindings.of(user))
    }
}

impl Bindings {
    fn add(&mut self, binding: Binding) {
        let index = self.list.len();
        for subject in &binding.subjects {
            let indexes = match subject.kind.as_str() {
                "User" => self.by_user.entry(subject.name.clone()),
                "Group" => self.by_group.entry(subject.name.clone()),
                "ServiceAccount" => match subject.account_namespace(&binding) {
                    "" => continue,
                    namespace => {
                        let user = service_account_user(namespace, &subject.name);
                        self.by_user.entry(user)
                    }
                },
                _ => continue,
            };
            indexes.or_default().push(index);
        }
        self.list.push(binding);
    }

    /// Returns the bindings that apply to a user, sorted by name.
    fn of<'a>(&'a self, user: &Identity) -> impl Iterator<Item = Grant<'a>> + use<'a> {
        let groups = user.groups.iter();
        let by_group = groups.filter_map(|group| self.by_group.get(group));
        let found = self.by_user.get(&user.user).into_iter().chain(by_group);
        let mut indexes: Vec<usize> = found.flatten().copied().collect();
        indexes.sort_unstable();
        indexes.dedup();
        let bindings = indexes.into_iter();
        bindings.filter_map(|index| self.list.get(index).map(Grant))
    }
}

impl Subject {
    /// Returns the namespace of a ServiceAccount, which by default is the namespace of the binding.
    fn account_namespace<'a>(&'a self, binding: &'a Binding) -> &'a str {
        match self.namespace.as_str() {
            "" => &binding.namespace,
            namespace => namespace,
        }
    }

    fn is(&self, user: &Identity, binding: &Binding) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.user,
            "Group" => user.is_member(&self.name),
            "ServiceAccount" => {
                let namespace = self.account_namespace(binding);
                !namespace.is_empty() && service_account_user(namespace, &self.name) == user.user
            }
            _ => false,
        }
    }
}

impl<'a> Grant<'a> {
    /// Returns the rules of the binding's role.
    pub(super) fn rules(self) -> Result<&'a [Rule], String> {
        match &self.0.rules {
            Ok(rules) => Ok(rules),
            Err(error) => Err(error.clone()),
        }
    }

    /// Describes the binding and its subject as Kubernetes does.
    pub(super) fn describe(self, user: &Identity) -> String {
        let binding = self.0;
        let subject = binding.subjects.iter().find(|s| s.is(user, binding));
        let subject = subject.map(|subject| match subject.kind.as_str() {
            "ServiceAccount" => {
                let namespace = subject.account_namespace(binding);
                format!("ServiceAccount \"{}/{namespace}\"", subject.name)
            }
            kind => format!("{kind} {:?}", subject.name),
        });
        let (kind, role) = (&binding.role_kind, &binding.role_name);
        let source = match binding.namespace.as_str() {
            "" => format!("ClusterRoleBinding {:?}", binding.name),
            namespace => format!("RoleBinding \"{}/{namespace}\"", binding.name),
        };
        format!(
            "{source} of {kind} {role:?} to {}",
            subject.unwrap_or_default()
        )
    }
}
