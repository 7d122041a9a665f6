//! What is allowed: rules, and their shortest form.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Some verbs on some resources of one API group, as in a Role.
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
    /// The API group; empty for the core group.
    pub group: String,
    /// Resources, or `resource/subresource`.
    pub resources: BTreeSet<String>,
    /// The verbs.
    pub verbs: BTreeSet<String>,
    /// Only objects of these names; all if there are none.
    pub names: BTreeSet<String>,
    /// Whether the resources are in namespaces: then a Role will do for an operator that is held to
    /// some.
    pub namespaced: bool,
}

impl PolicyRule {
    /// Allows `verbs` on `resources` of `group`.
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

    /// Of resources that are in no namespace.
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// Only of objects with these names.
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

/// The rules in their shortest form: what is said of one resource is said once, and resources of a
/// group with the same verbs are in one rule. Sorted.
pub fn merge(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    type Of = (String, BTreeSet<String>, bool);
    let mut verbs: BTreeMap<(Of, String), BTreeSet<String>> = BTreeMap::new();
    for rule in rules {
        for resource in &rule.resources {
            let of = (rule.group.clone(), rule.names.clone(), rule.namespaced);
            let entry = verbs.entry((of, resource.clone())).or_default();
            entry.extend(rule.verbs.iter().cloned());
        }
    }
    let mut merged: BTreeMap<(Of, BTreeSet<String>), BTreeSet<String>> = BTreeMap::new();
    for ((of, resource), verbs) in verbs {
        merged.entry((of, verbs)).or_default().insert(resource);
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
