//! Permissions that an operator needs, and those that it lacks.

use std::collections::BTreeMap;
use std::fmt;

/// A permission that an operator needs: one verb on one resource, in the namespaces that it
/// watches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Permission {
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, or `resource/subresource`.
    pub resource: String,
    /// The verb.
    pub verb: String,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_rule(
            f,
            &self.group,
            &self.resource,
            std::slice::from_ref(&self.verb),
        )
    }
}

/// Writes one rule with the fields of a rule in a Role: `apiGroups`, `resources` and `verbs`.
fn write_rule(
    f: &mut fmt::Formatter<'_>,
    group: &str,
    resource: &str,
    verbs: &[String],
) -> fmt::Result {
    write!(
        f,
        "apiGroups [{group:?}], resources [{resource:?}], verbs {verbs:?}"
    )
}

/// Permissions that an operator lacks.
#[derive(Debug, Default)]
pub struct MissingPermissions {
    /// Verbs, by namespace (`None` for the whole cluster), group and resource.
    verbs: BTreeMap<(Option<String>, String, String), Vec<String>>,
}

impl MissingPermissions {
    pub(crate) fn is_empty(&self) -> bool {
        self.verbs.is_empty()
    }

    /// Adds a permission that is missing in `namespace`, or in the whole cluster for `None`.
    pub(crate) fn add(&mut self, permission: &Permission, namespace: Option<&str>) {
        let Permission {
            group,
            resource,
            verb,
            ..
        } = permission;
        let place = namespace.map(str::to_owned);
        let verbs = self.verbs.entry((place, group.clone(), resource.clone()));
        let verbs = verbs.or_default();
        if !verbs.contains(verb) {
            verbs.push(verb.clone());
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for ((namespace, group, resource), verbs) in other.verbs {
            for verb in verbs {
                let permission = Permission {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb,
                    namespaced: namespace.is_some(),
                };
                self.add(&permission, namespace.as_deref());
            }
        }
    }
}

/// Formats the missing permissions as rules of a Role, one after the other.
impl fmt::Display for MissingPermissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, ((namespace, group, resource), verbs)) in self.verbs.iter().enumerate() {
            if n > 0 {
                f.write_str("; ")?;
            }
            write_rule(f, group, resource, verbs)?;
            match namespace {
                Some(namespace) => write!(f, ", in namespace {namespace}")?,
                None => f.write_str(", in the whole cluster")?,
            }
        }
        Ok(())
    }
}
