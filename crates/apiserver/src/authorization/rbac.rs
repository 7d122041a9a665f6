//! The RBAC authorizer: decides by Roles, ClusterRoles and their bindings.
//!
//! The objects are parsed into a [`Policy`] when one of them has changed, and not for each request.

mod covers;
mod policy;
mod rule;

use std::sync::Arc;

use parking_lot::RwLock;

use super::{Attributes, Decision};
use crate::authentication::Identity;
use crate::store::Store;

pub(crate) use covers::{describe_missing, uncovered};
pub(crate) use policy::Policy;
pub(crate) use rule::Rule;

/// The resources that a policy consists of.
const RESOURCES: [&str; 4] = [
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
];

/// The current policy, parsed.
#[derive(Debug, Default)]
pub(super) struct PolicyCache {
    /// The policy, and the revision of the last write to one of its objects.
    current: RwLock<(u64, Arc<Policy>)>,
}

impl PolicyCache {
    /// Returns the policy that the objects in the store form.
    pub(super) fn get(&self, store: &Store) -> Arc<Policy> {
        // Read before the objects: if an object is written meanwhile, the next call parses again.
        let revisions = RESOURCES.map(|resource| store.resource_revision(resource));
        let revision = revisions.into_iter().max().unwrap_or_default();
        {
            let current = self.current.read();
            if current.0 == revision {
                return current.1.clone();
            }
        }
        let [cluster_bindings, cluster_roles, bindings, roles] =
            RESOURCES.map(|resource| store.list(resource, None).0);
        let policy = Policy::parse(&cluster_roles, &cluster_bindings, &roles, &bindings);
        let policy = Arc::new(policy);
        let mut current = self.current.write();
        // Another request may have parsed a newer policy.
        if current.0 < revision {
            *current = (revision, policy.clone());
        }
        policy
    }
}

/// Decides on a request by a policy. RBAC has no rules that deny: if no rule allows the request,
/// there is no opinion.
pub(super) fn authorize(policy: &Policy, user: &Identity, attributes: &Attributes<'_>) -> Decision {
    let request = rule::RequestToMatch::new(attributes);
    let mut errors = Vec::new();
    for grant in policy.grants(user, &attributes.namespace) {
        match grant.rules() {
            Ok(rules) => {
                if rules.iter().any(|rule| rule.allows(&request)) {
                    return Decision::allow(format!("RBAC: allowed by {}", grant.describe(user)));
                }
            }
            Err(error) => errors.push(error),
        }
    }
    Decision::no_opinion(match errors.is_empty() {
        true => String::new(),
        false => format!("RBAC: {}", aggregate(errors)),
    })
}

/// Returns the rules that apply to a user in a namespace, and the errors of the roles that do not
/// exist.
pub(crate) fn rules_for(
    policy: &Policy,
    user: &Identity,
    namespace: &str,
) -> (Vec<Rule>, Option<String>) {
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for grant in policy.grants(user, namespace) {
        match grant.rules() {
            Ok(found) => rules.extend(found.iter().cloned()),
            Err(error) => errors.push(error),
        }
    }
    let errors = (!errors.is_empty()).then(|| aggregate(errors));
    (rules, errors)
}

/// Joins error messages as Kubernetes does: each message once, and several in brackets.
fn aggregate(errors: Vec<String>) -> String {
    let mut unique: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        if !unique.contains(&error) {
            unique.push(error);
        }
    }
    match unique.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests;
