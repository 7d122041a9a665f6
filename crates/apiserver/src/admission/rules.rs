//! Rules that select requests by operation, group, version, resource and scope: those of webhooks
//! and of admission policies.

use serde_json::Value;

use super::Attributes;
use crate::kinds::Kind;
use crate::object;

/// A rule of a webhook or of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resources and subresources.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Names of objects; only policies have them. Empty means all.
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    All,
    Namespaced,
    Cluster,
}

impl Rule {
    pub(crate) fn parse(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let items = object::items(rule, &[field]).iter();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let resources = texts("resources");
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: resources
                .iter()
                .map(|resource| match resource.split_once('/') {
                    Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
                    None => (resource.clone(), String::new()),
                })
                .collect(),
            scope: match object::text(rule, &["scope"]) {
                "Namespaced" => Scope::Namespaced,
                "Cluster" => Scope::Cluster,
                _ => Scope::All,
            },
            names: texts("resourceNames"),
        }
    }

    /// Reports whether the rule selects a request, if the resource of the request were that of
    /// `kind`.
    pub(crate) fn matches(&self, attributes: &Attributes<'_>, kind: &Kind) -> bool {
        self.has_scope(attributes, kind)
            && contains(&self.operations, attributes.operation.as_str())
            && contains(&self.groups, &kind.group)
            && contains(&self.versions, &kind.version)
            && self.has_resource(&kind.plural, &attributes.target.subresource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == attributes.name))
    }

    fn has_scope(&self, attributes: &Attributes<'_>, kind: &Kind) -> bool {
        // Namespaces are cluster-scoped, although their requests have a namespace.
        let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
        let is_cluster_scoped = is_namespace || attributes.namespace().is_empty();
        match self.scope {
            Scope::All => true,
            Scope::Namespaced => !is_cluster_scoped,
            Scope::Cluster => is_cluster_scoped,
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|(wanted, wanted_subresource)| {
            (wanted == "*" || wanted == resource)
                && (wanted_subresource == "*" || wanted_subresource == subresource)
        })
    }
}

/// Reports whether `items` has the value or the wildcard.
fn contains(items: &[String], value: &str) -> bool {
    items.iter().any(|item| item == "*" || item == value)
}
