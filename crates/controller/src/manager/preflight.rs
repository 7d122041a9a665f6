//! Checks before the start: the server serves each kind and grants each permission. Without the
//! checks, a controller whose CRD or permission is missing would idle and report nothing.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use opkit_client::{Kind, ListOptions, RequestError, ResponseFormat, RestClient, WriteOptions};
use serde::Deserialize;
use serde_json::json;
use tracing::debug;

use super::ManagerOptions;
use crate::error::{ManagerError, MissingPermissions, Permission};

/// Number of attempts to list a kind that the server does not serve: a server serves a new CRD only
/// after a short delay.
const ATTEMPTS: u32 = 5;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// Duration of a watch that only checks the permission, and largest time until the watch starts.
const WATCH: Duration = Duration::from_secs(1);

/// Result of a check: the missing permissions, and the first error with which the server refused a
/// request. The error names the user.
#[derive(Default)]
struct Found {
    missing: MissingPermissions,
    refusal: Option<RequestError>,
}

pub(super) async fn check(
    operator: &str,
    client: &RestClient,
    options: &ManagerOptions,
    watched: &[Kind],
    uncached: &[Kind],
) -> Result<(), ManagerError> {
    let watched: HashSet<_> = watched.iter().collect();
    let uncached: HashSet<_> = uncached.iter().collect();
    let only_read = uncached.difference(&watched).map(|kind| (*kind, false));
    let mut kinds: Vec<_> = watched.iter().map(|kind| (*kind, true)).collect();
    kinds.extend(only_read);
    // Custom kinds first, because their error is more helpful.
    kinds.sort_by_key(|(kind, _)| (!kind.group.contains('.'), kind.to_string()));
    let known = kinds.into_iter().flat_map(|(kind, watches)| {
        let namespaces = options.scope.namespaces(kind.namespaced).into_iter();
        namespaces.map(move |namespace| check_kind(operator, client, kind, namespace, watches))
    });
    let allowed = options.permissions.iter().flat_map(|permission| {
        let namespaces = options.scope.namespaces(permission.namespaced).into_iter();
        namespaces.map(move |namespace| check_permission(client, permission.clone(), namespace))
    });
    // All checks run concurrently, so that a start takes no longer than the slowest one. An unknown
    // kind is reported before permissions, and all missing permissions are in one error.
    let (known, allowed) = futures::join!(join_all(known), join_all(allowed));
    let mut found = Found::default();
    for known in known {
        let Found { missing, refusal } = known?;
        found.missing.extend(missing);
        found.refusal = found.refusal.or(refusal);
    }
    for missing in allowed {
        found.missing.extend(missing);
    }
    if found.missing.is_empty() {
        return Ok(());
    }
    Err(ManagerError::Forbidden {
        operator: operator.to_owned(),
        missing: found.missing,
        cause: found.refusal,
    })
}

/// Checks that the server serves the kind and permits to list it and, if `watches`, to watch it.
async fn check_kind(
    operator: &str,
    client: &RestClient,
    kind: &Kind,
    namespace: Option<String>,
    watches: bool,
) -> Result<Found, ManagerError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut options = ListOptions::new().limit(1);
        options.namespace = namespace.clone();
        let list = client.list(kind, &options, ResponseFormat::default());
        match list.await {
            Ok(_) if !watches => return Ok(Found::default()),
            Ok(list) => {
                let refusal = check_watch(client, kind, namespace.as_deref(), &list.body).await;
                let mut missing = MissingPermissions::default();
                if refusal.is_some() {
                    missing.add(&permission(kind, "watch"), namespace.as_deref());
                }
                return Ok(Found { missing, refusal });
            }
            Err(error) if error.is_not_found() && attempt < ATTEMPTS => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) if error.is_not_found() => {
                return Err(ManagerError::UnknownKind {
                    operator: operator.to_owned(),
                    kind: Box::new(kind.clone()),
                });
            }
            Err(error) if error.is_forbidden() => {
                let mut missing = MissingPermissions::default();
                missing.add(&permission(kind, "list"), namespace.as_deref());
                if watches {
                    let watch = permission(kind, "watch");
                    missing.extend(check_permission(client, watch, namespace).await);
                }
                let refusal = Some(error);
                return Ok(Found { missing, refusal });
            }
            Err(error) => return Err(ManagerError::Preflight(error)),
        }
    }
}

/// Returns the permission for `verb` on `kind`.
fn permission(kind: &Kind, verb: &str) -> Permission {
    Permission {
        group: kind.group.clone(),
        resource: kind.plural.clone(),
        verb: verb.to_owned(),
        namespaced: kind.namespaced,
    }
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

/// Checks the permission to watch, because an informer that may list but not watch would miss every
/// change. Starts a watch at the version of `list` and ends the watch immediately. Returns the
/// error if the watch is forbidden. Other errors are ignored, because the informer retries.
async fn check_watch(
    client: &RestClient,
    kind: &Kind,
    namespace: Option<&str>,
    list: &[u8],
) -> Option<RequestError> {
    let list: List = serde_json::from_slice(list).ok()?;
    let mut options = ListOptions::new();
    options.namespace = namespace.map(str::to_owned);
    options.resource_version = list.metadata.resource_version;
    options.watch_timeout = WATCH;
    let watch = client.watch(kind, &options, ResponseFormat::default());
    match tokio::time::timeout(WATCH, watch).await {
        Ok(Err(error)) if error.is_forbidden() => Some(error),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Review {
    #[serde(default)]
    status: ReviewStatus,
}

#[derive(Deserialize, Default)]
struct ReviewStatus {
    #[serde(default)]
    allowed: bool,
}

/// Asks the server whether the operator has a permission, and returns the permission if it is
/// missing. If the request fails or gets no response, the permission is assumed.
async fn check_permission(
    client: &RestClient,
    permission: Permission,
    namespace: Option<String>,
) -> MissingPermissions {
    let (resource, subresource) = match permission.resource.split_once('/') {
        Some((resource, subresource)) => (resource, subresource),
        None => (&*permission.resource, ""),
    };
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {
            "group": permission.group,
            "resource": resource,
            "subresource": subresource,
            "verb": permission.verb,
            "namespace": namespace.as_deref().unwrap_or_default(),
        }},
    });
    let reviews = Kind {
        group: "authorization.k8s.io".into(),
        version: "v1".into(),
        kind: "SelfSubjectAccessReview".into(),
        plural: "selfsubjectaccessreviews".into(),
        namespaced: false,
    };
    let options = WriteOptions::for_manager("opkit");
    let review = client.create(&reviews, None, &body, &options).await;
    let review = match review {
        Ok(response) => serde_json::from_slice::<Review>(&response).ok(),
        Err(error) => {
            debug!(%error, "cannot check a permission");
            None
        }
    };
    let mut missing = MissingPermissions::default();
    if review.is_some_and(|review| !review.status.allowed) {
        missing.add(&permission, namespace.as_deref());
    }
    missing
}
