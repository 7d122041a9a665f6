//! RBAC rules, and the merging of several rules into few.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// RBAC rule: verbs on resources of one API group, as in a Role.
///
/// # Examples
/// ```
/// use opkit_manifests::PolicyRule;
/// let scale = PolicyRule::new("apps", ["deployments/scale"], ["get", "patch"]);
/// let nodes = PolicyRule::new("", ["nodes"], ["get"]).cluster_scoped();
/// let one = PolicyRule::new("", ["configmaps"], ["get"]).named(["settings"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PolicyRule {
    /// API group; empty for the core group.
    pub group: String,
    /// Resources, or subresources as `resource/subresource`.
    pub resources: BTreeSet<String>,
    /// Allowed verbs.
    pub verbs: BTreeSet<String>,
    /// Names of the objects to which the rule is limited. An empty set means all objects.
    pub names: BTreeSet<String>,
    /// Whether the resources are namespaced. If an operator is limited to some namespaces, the
    /// rules for namespaced resources become Roles. All other rules become a ClusterRole.
    pub namespaced: bool,
}

impl PolicyRule {
    /// Creates a rule that allows `verbs` on `resources` of `group`.
    pub fn new<R: Into<String>, V: Into<String>>(
        group: impl Into<String>,
        resources: impl IntoIterator<Item = R>,
        verbs: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            group: group.into(),
            resources: resources.into_iter().map(Into::into).collect(),
            verbs: verbs.into_iter().map(Into::into).collect(),
            names: BTreeSet::new(),
            namespaced: true,
        }
    }

    /// Marks the resources as cluster-scoped.
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Limits the rule to objects with these names.
    pub fn named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    pub(crate) fn document(&self) -> Value {
        let mut rule = json!({
            "apiGroups": [self.group],
            "resources": self.resources,
            "verbs": self.verbs,
        });
        if let (false, Some(fields)) = (self.names.is_empty(), rule.as_object_mut()) {
            fields.insert("resourceNames".into(), json!(self.names));
        }
        rule
    }
}

/// Merges rules into as few rules as possible, sorted. Each resource occurs once, and resources of
/// one group with the same verbs share a rule.
pub fn merge(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    type Scope = (String, BTreeSet<String>, bool);
    let mut verbs: BTreeMap<(Scope, String), BTreeSet<String>> = BTreeMap::new();
    for rule in rules {
        for resource in &rule.resources {
            let scope = (rule.group.clone(), rule.names.clone(), rule.namespaced);
            let entry = verbs.entry((scope, resource.clone())).or_default();
            entry.extend(rule.verbs.iter().cloned());
        }
    }
    let mut merged: BTreeMap<(Scope, BTreeSet<String>), BTreeSet<String>> = BTreeMap::new();
    for ((scope, resource), verbs) in verbs {
        merged.entry((scope, verbs)).or_default().insert(resource);
    }
    let rule = |(((group, names, namespaced), verbs), resources)| PolicyRule {
        group,
        resources,
        verbs,
        names,
        namespaced,
    };
    let mut rules: Vec<_> = merged.into_iter().map(rule).collect();
    rules.sort();
    rules
}

#[cfg(test)]
mod tests;
