//! Before anything starts: does the server know each kind, and may we do what we need? A controller
//! that idles because a CRD or a permission is missing is the worst answer.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use opkit_client::{Kind, RestClient, WatchOptions};
use serde::Deserialize;
use serde_json::json;
use tracing::debug;

use super::ManagerOptions;
use crate::ManagerError;

/// A CRD that was installed a moment ago is served only after a moment.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// How long a watch that only asks for the permission lasts at the server, and may take to begin.
const WATCH: Duration = Duration::from_secs(1);

/// Something that an operator needs to be allowed: one verb on one resource, in the namespaces that
/// it watches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Permission {
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, or `resource/subresource`.
    pub resource: String,
    /// The verb.
    pub verb: String,
    /// Whether the resource is in namespaces.
    pub namespaced: bool,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permission {
            group,
            resource,
            verb,
            ..
        } = self;
        write!(
            f,
            "apiGroups [{group:?}], resources [{resource:?}], verbs [{verb:?}]"
        )
    }
}

pub(super) async fn check(
    operator: &str,
    client: &RestClient,
    options: &ManagerOptions,
    kinds: &[Kind],
) -> Result<(), ManagerError> {
    let kinds: HashSet<_> = kinds.iter().collect();
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    // Custom kinds first: theirs is the more helpful message.
    kinds.sort_by_key(|kind| (!kind.group.contains('.'), kind.to_string()));
    let known = kinds.into_iter().flat_map(|kind| {
        let namespaces = options.scope.namespaces(kind.namespaced).into_iter();
        namespaces.map(move |namespace| check_kind(operator, client, kind, namespace))
    });
    let allowed = options.permissions.iter().flat_map(|permission| {
        let namespaces = options.scope.namespaces(permission.namespaced).into_iter();
        namespaces.map(move |namespace| check_permission(client, permission, namespace))
    });
    // Together, so that a start takes no longer than the slowest; of several errors the first counts, and
    // that a kind is not known more than that something may not be done to it.
    let (known, allowed) = futures::join!(join_all(known), try_join_all(allowed));
    known.into_iter().collect::<Result<(), _>>()?;
    allowed.map(drop)
}

async fn check_kind(
    operator: &str,
    client: &RestClient,
    kind: &Kind,
    namespace: Option<String>,
) -> Result<(), ManagerError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match client.list(kind, namespace.as_deref(), 1, None).await {
            Ok(list) => return check_watch(client, kind, namespace.as_deref(), &list).await,
            Err(error) if error.is_not_found() && attempt < ATTEMPTS => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) if error.is_not_found() => {
                return Err(ManagerError::UnknownKind {
                    operator: operator.to_owned(),
                    kind: Box::new(kind.clone()),
                });
            }
            Err(error) if error.is_forbidden() => return Err(ManagerError::Forbidden(error)),
            Err(error) => return Err(ManagerError::Preflight(error)),
        }
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

/// Begins a watch at the version of `list` and gives it up at once: an informer that may list but
/// not watch would be deaf. What else can go wrong with a watch, the informer retries.
async fn check_watch(
    client: &RestClient,
    kind: &Kind,
    namespace: Option<&str>,
    list: &[u8],
) -> Result<(), ManagerError> {
    let Ok(list) = serde_json::from_slice::<List>(list) else {
        return Ok(());
    };
    let options = WatchOptions {
        resource_version: list.metadata.resource_version,
        timeout: WATCH,
        ..Default::default()
    };
    match tokio::time::timeout(WATCH, client.watch(kind, namespace, &options)).await {
        Ok(Err(error)) if error.is_forbidden() => Err(ManagerError::Forbidden(error)),
        _ => Ok(()),
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

/// Asks the server whether we may. A server that cannot be asked, or does not answer, is no reason
/// not to start.
async fn check_permission(
    client: &RestClient,
    permission: &Permission,
    namespace: Option<String>,
) -> Result<(), ManagerError> {
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
    let review = client.create(&reviews, None, &body, "opkit").await;
    let review = match review {
        Ok(answer) => serde_json::from_slice::<Review>(&answer).ok(),
        Err(error) => {
            debug!(%error, "cannot ask for a permission");
            None
        }
    };
    if review.is_none_or(|review| review.status.allowed) {
        return Ok(());
    }
    let place = match namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in the whole cluster".to_owned(),
    };
    Err(ManagerError::MissingRule(format!("{permission}, {place}")))
}
