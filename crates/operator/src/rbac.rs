//! Permissions that an operator needs, inferred from its declarations.

use std::collections::BTreeSet;

use opkit_controller::{AnyController, EventApi, Kind, Permission, WatchedKind};
use opkit_manifests::{PolicyRule, merge};

/// Verbs that an informer needs to cache a kind.
const CACHE: [&str; 2] = ["list", "watch"];
/// Verbs for reading a kind that is not cached.
const READ: [&str; 2] = ["get", "list"];
/// Verbs for applying, pruning and deleting children. A child is read from the server if it has
/// changed since it was cached.
const WRITE: [&str; 4] = ["create", "delete", "get", "patch"];

/// Verbs for creating a child once. If it exists, it is read from the server.
const CREATE: [&str; 2] = ["create", "get"];

/// Declarations that permissions are inferred from.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    pub(crate) controllers: &'a [AnyController],
    /// Plural and group of each of the operator's own kinds that has a status.
    pub(crate) with_status: BTreeSet<(String, String)>,
    /// Kinds that webhooks read from the cache.
    pub(crate) read: Vec<Kind>,
    /// Kinds that are cached for runnables and states.
    pub(crate) kinds: &'a [Kind],
    /// Kinds that all controllers read from the server.
    pub(crate) uncached: &'a [Kind],
    /// Whether replicas divide the objects, and read those of other replicas from the server.
    pub(crate) sharded: bool,
    /// Rules that the operator declares, for requests that opkit cannot infer.
    pub(crate) rules: &'a [PolicyRule],
    pub(crate) event_api: EventApi,
}

impl Declared<'_> {
    /// Returns the operator's rules with least privilege: read watched kinds, write children, and
    /// write the status and finalizers of reconciled kinds.
    pub(crate) fn rules(&self) -> Vec<PolicyRule> {
        let mut rules = self.needed();
        // The operator runs without these permissions too, but no event is created.
        let group = match self.event_api {
            EventApi::CoreV1 => "",
            _ => "events.k8s.io",
        };
        let events = PolicyRule::new(group, ["events"], ["create", "patch"]);
        // Events about cluster-scoped objects are in the namespace `default`, in which an operator
        // that watches only some namespaces has no role.
        let kinds = self.controllers.iter().map(AnyController::kind);
        rules.push(match kinds.chain(self.kinds).all(|kind| kind.namespaced) {
            true => events,
            false => events.cluster_scoped(),
        });
        merge(&rules)
    }

    /// Returns the permissions without which the operator does not start. The verbs `list` and
    /// `watch` are left out: the manager checks them by a list and a watch of each kind.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let mut permissions = BTreeSet::new();
        for rule in self.needed() {
            let one = |resource: &String, verb: &String| Permission {
                group: rule.group.clone(),
                resource: resource.clone(),
                verb: verb.clone(),
                namespaced: rule.namespaced,
            };
            // Permission on named objects cannot be checked without a name.
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
        let read = self.read.iter().chain(self.kinds);
        rules.extend(read.map(|kind| rule(kind, "", &CACHE)));
        let own = self.controllers.iter();
        let uncached = own
            .flat_map(AnyController::uncached_kinds)
            .chain(self.uncached);
        rules.extend(uncached.map(|kind| rule(kind, "", &READ)));
        for controller in self.controllers {
            let watched = controller.watches();
            let owns = |watched: &WatchedKind| watched.is_owned || watched.is_created_once;
            let owns = watched.iter().any(owns);
            for watched in watched {
                rules.push(rule(&watched.kind, "", &CACHE));
                if self.sharded {
                    rules.push(rule(&watched.kind, "", &["get"]));
                }
                if watched.is_owned || watched.is_unowned {
                    rules.push(rule(&watched.kind, "", &WRITE));
                }
                if watched.is_created_once {
                    rules.push(rule(&watched.kind, "", &CREATE));
                }
                if !watched.is_reconciled {
                    continue;
                }
                // The object is read from the server if it has changed since it was cached.
                if controller.has_finalizer() {
                    rules.push(rule(&watched.kind, "", &["get", "patch"]));
                }
                let kind = &watched.kind;
                let resource = (kind.plural.clone(), kind.group.clone());
                if self.with_status.contains(&resource) || controller.sets_condition() {
                    rules.push(rule(&watched.kind, "", &["get"]));
                    rules.push(rule(&watched.kind, "/status", &["patch"]));
                }
                // Clusters with the admission plugin OwnerReferencesPermissionEnforcement require
                // this before an owner reference may block the owner's deletion.
                if owns {
                    rules.push(rule(&watched.kind, "/finalizers", &["update"]));
                }
            }
        }
        rules
    }
}

fn rule(kind: &Kind, subresource: &str, verbs: &[&str]) -> PolicyRule {
    let resource = format!("{}{subresource}", kind.plural);
    let rule = PolicyRule::new(&kind.group, [resource], verbs.iter().copied());
    match kind.namespaced {
        true => rule,
        false => rule.cluster_scoped(),
    }
}

#[cfg(test)]
mod tests;
