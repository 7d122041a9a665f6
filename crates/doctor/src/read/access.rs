//! Whether the user may do what a deployment does.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use opkit_client::{DynamicClient, Kind, RestMapper, Unstructured};
use serde_json::{Value, json};

use crate::value::{items, kind, namespace, text, texts};
use crate::{Denied, OperatorManifests};

/// Number of reviews that are sent at the same time.
const CONCURRENT: usize = 16;
/// Verbs of a deployment on each of its kinds. Objects are listed and deleted when they leave a
/// release.
const VERBS: [&str; 5] = ["create", "delete", "get", "list", "patch"];

/// One permission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    namespace: Option<String>,
    group: String,
    resource: String,
    verb: String,
}

/// Returns the permissions of a deployment that the user lacks. A user who may do everything costs
/// one request.
pub(super) async fn denied(
    client: &DynamicClient,
    mapper: &RestMapper,
    manifests: &OperatorManifests,
) -> Vec<Denied> {
    let all = Permission {
        namespace: None,
        group: "*".to_owned(),
        resource: "*".to_owned(),
        verb: "*".to_owned(),
    };
    if is_allowed(client, &all).await {
        return Vec::new();
    }
    let mut needed = needed(mapper, manifests).await;
    let escalate = Permission {
        namespace: None,
        group: "rbac.authorization.k8s.io".to_owned(),
        resource: "clusterroles".to_owned(),
        verb: "escalate".to_owned(),
    };
    if !is_allowed(client, &escalate).await {
        // No user may grant more permissions than those that the user has.
        needed.extend(granted(manifests));
    }
    let reviews = needed.into_iter().map(async |permission| {
        let allowed = is_allowed(client, &permission).await;
        (!allowed).then_some(permission)
    });
    let reviews: Vec<_> = reviews.collect();
    let missing: Vec<_> = futures::stream::iter(reviews)
        .buffered(CONCURRENT)
        .collect()
        .await;
    grouped(missing.into_iter().flatten())
}

/// Returns the permissions on the kinds of the manifests, and on the Secrets of the inventory.
async fn needed(mapper: &RestMapper, manifests: &OperatorManifests) -> BTreeSet<Permission> {
    let inventory = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": manifests.namespace},
    });
    let mut needed = BTreeSet::new();
    for object in manifests.objects.iter().chain([&inventory]) {
        let api_version = text(object, "/apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        // A kind that the cluster does not have cannot be deployed by anyone.
        let Ok(found) = mapper.kind(group, kind(object), Some(version)).await else {
            continue;
        };
        let Kind { group, plural, .. } = found.kind();
        needed.extend(VERBS.iter().map(|verb| Permission {
            namespace: namespace(object).map(str::to_owned),
            group: group.clone(),
            resource: plural.clone(),
            verb: (*verb).to_owned(),
        }));
    }
    needed
}

/// Returns the permissions in the roles of the manifests.
fn granted(manifests: &OperatorManifests) -> Vec<Permission> {
    let roles = manifests.objects.iter();
    let roles = roles.filter(|it| matches!(kind(it), "Role" | "ClusterRole"));
    let mut granted = Vec::new();
    for role in roles {
        for rule in items(role, "/rules") {
            for group in texts(rule, "/apiGroups") {
                for resource in texts(rule, "/resources") {
                    granted.extend(texts(rule, "/verbs").into_iter().map(|verb| Permission {
                        namespace: namespace(role).map(str::to_owned),
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        verb: verb.to_owned(),
                    }));
                }
            }
        }
    }
    granted
}

/// Reports whether the user has a permission. A review that fails counts as allowed, because it
/// shows nothing.
async fn is_allowed(client: &DynamicClient, permission: &Permission) -> bool {
    let (resource, subresource) = match permission.resource.split_once('/') {
        Some((resource, subresource)) => (resource, subresource),
        None => (permission.resource.as_str(), ""),
    };
    let review = json!({"spec": {"resourceAttributes": {
        "namespace": permission.namespace, "group": permission.group, "verb": permission.verb,
        "resource": resource, "subresource": subresource,
    }}});
    let kind = Kind {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "SelfSubjectAccessReview".to_owned(),
        plural: "selfsubjectaccessreviews".to_owned(),
        namespaced: false,
    };
    let reviewed = client
        .resource(kind)
        .create(&Unstructured::from(review))
        .await;
    reviewed.map_or(true, |review| {
        review.get(&["status", "allowed"]) == Some(&Value::Bool(true))
    })
}

/// Groups permissions by their resource.
fn grouped(missing: impl Iterator<Item = Permission>) -> Vec<Denied> {
    let mut denied: Vec<Denied> = Vec::new();
    let missing: BTreeSet<_> = missing.collect();
    for Permission {
        namespace,
        group,
        resource,
        verb,
    } in missing
    {
        let resource = match (group.as_str(), resource.split_once('/')) {
            ("", _) => resource,
            (group, None) => format!("{resource}.{group}"),
            (group, Some((resource, subresource))) => format!("{resource}.{group}/{subresource}"),
        };
        match denied.last_mut() {
            Some(last) if last.resource == resource && last.namespace == namespace => {
                last.verbs.push(verb);
            }
            _ => denied.push(Denied {
                resource,
                namespace,
                verbs: vec![verb],
            }),
        }
    }
    denied
}

#[cfg(test)]
mod tests;
