//! Before anything starts: does the server know each kind, and may we list and watch it? A
//! controller that idles because a CRD or a permission is missing is the worst answer.

use std::collections::HashSet;
use std::time::Duration;

use opkit_cache::Scope;
use opkit_client::{Kind, RestClient, WatchOptions};
use serde::Deserialize;

use crate::ManagerError;

/// A CRD that was installed a moment ago is served only after a moment.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// How long a watch that only asks for the permission lasts at the server, and may take to begin.
const WATCH: Duration = Duration::from_secs(1);

pub(super) async fn check(
    operator: &str,
    client: &RestClient,
    scope: &Scope,
    kinds: HashSet<Kind>,
) -> Result<(), ManagerError> {
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    // Custom kinds first: theirs is the more helpful message.
    kinds.sort_by_key(|kind| (!kind.group.contains('.'), kind.to_string()));
    for kind in kinds {
        for namespace in scope.namespaces(kind.namespaced) {
            let mut attempt = 0;
            loop {
                attempt += 1;
                match client.list(&kind, namespace.as_deref(), 1, None).await {
                    Ok(list) => {
                        check_watch(client, &kind, namespace.as_deref(), &list).await?;
                        break;
                    }
                    Err(error) if error.is_not_found() && attempt < ATTEMPTS => {
                        tokio::time::sleep(PAUSE).await;
                    }
                    Err(error) if error.is_not_found() => {
                        return Err(ManagerError::UnknownKind {
                            operator: operator.to_owned(),
                            kind: Box::new(kind),
                        });
                    }
                    Err(error) if error.is_forbidden() => {
                        return Err(ManagerError::Forbidden(error));
                    }
                    Err(error) => return Err(ManagerError::Preflight(error)),
                }
            }
        }
    }
    Ok(())
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
