//! Which permissions follow from what an operator declares.

use std::collections::BTreeSet;

use opkit_controller::{AnyController, EventApi, Permission, WatchedKind};
use opkit_manifests::{PolicyRule, merge};

/// What is read through informers.
const READ: [&str; 3] = ["get", "list", "watch"];
/// What applying, pruning and deleting children takes.
const WRITE: [&str; 3] = ["create", "delete", "patch"];

/// Who declares what.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    pub(crate) controllers: &'a [AnyController],
    /// Plural and group of the operator's own kinds that have a status.
    pub(crate) with_status: BTreeSet<(String, String)>,
    /// Declared by hand, for calls that opkit cannot know of.
    pub(crate) rules: &'a [PolicyRule],
    pub(crate) event_api: EventApi,
}

impl Declared<'_> {
    /// The rules of the operator, least privilege: reading what is watched, writing children, and
    /// of the reconciled kind the status and the finalizers.
    pub(crate) fn rules(&self) -> Vec<PolicyRule> {
        let mut rules = self.needed();
        // Without these it works, silently.
        let group = match self.event_api {
            EventApi::CoreV1 => "",
            _ => "events.k8s.io",
        };
        let events = PolicyRule::new(group, ["events"], ["create", "patch"]);
        // Those about objects of the cluster scope are in the namespace `default`, which an
        // operator that is held to namespaces has no role in.
        let mut kinds = self.controllers.iter().map(AnyController::kind);
        rules.push(match kinds.all(|kind| kind.namespaced) {
            true => events,
            false => events.cluster_scoped(),
        });
        merge(&rules)
    }

    /// What must be allowed, or the operator does not start. That kinds can be listed and watched
    /// is found by doing so.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let mut permissions = BTreeSet::new();
        for rule in self.needed() {
            let one = |resource: &String, verb: &String| Permission {
                group: rule.group.clone(),
                resource: resource.clone(),
                verb: verb.clone(),
                namespaced: rule.namespaced,
            };
            // A permission on some names cannot be asked for without one.
            let resources = rule.resources.iter().filter(|_| rule.names.is_empty());
            for resource in resources {
                let verbs = rule.verbs.iter();
                let verbs = verbs.filter(|verb| *verb != "list" && *verb != "watch");
                permissions.extend(verbs.map(|verb| one(resource, verb)));
            }
        }
        permissions.into_iter().collect()
    }

    fn needed(&self) -> Vec<PolicyRule> {
        let mut rules = self.rules.to_vec();
        for controller in self.controllers {
            let watched = controller.watches();
            let owns = watched.iter().any(|watched| watched.is_owned);
            for watched in watched {
                rules.push(rule(&watched, "", &READ));
                if watched.is_owned || watched.is_unowned {
                    rules.push(rule(&watched, "", &WRITE));
                }
                if !watched.is_reconciled {
                    continue;
                }
                if controller.has_finalizer() {
                    rules.push(rule(&watched, "", &["patch"]));
                }
                let kind = &watched.kind;
                let resource = (kind.plural.clone(), kind.group.clone());
                if self.with_status.contains(&resource) {
                    rules.push(rule(&watched, "/status", &["patch"]));
                }
                // Clusters that enforce it ask for this before an owner may block its deletion.
                if owns {
                    rules.push(rule(&watched, "/finalizers", &["update"]));
                }
            }
        }
        rules
    }
}

fn rule(watched: &WatchedKind, subresource: &str, verbs: &[&str]) -> PolicyRule {
    let kind = &watched.kind;
    let resource = format!("{}{subresource}", kind.plural);
    let rule = PolicyRule::new(&kind.group, [resource], verbs.iter().copied());
    match kind.namespaced {
        true => rule,
        false => rule.cluster_scoped(),
    }
}

#[cfg(test)]
mod tests;
