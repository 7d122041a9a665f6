//! Rewrites the stored objects of a custom resource in its storage version.
//!
//! An API server encodes an object in the storage version of its CRD when the object is written.
//! Objects that were written before the storage version changed stay in the old version, and
//! `status.storedVersions` of the CRD lists all versions that may be stored. A version can be
//! removed from the CRD only after all objects were rewritten and the list was cleaned, which
//! [`StorageMigration`] does.
//!
//! A migration has no state of its own: after an interruption it is started again. Objects that are
//! already in the storage version are sent again, and the server does not write them.

mod by_cluster;
mod error;

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::error::MigrationError;
use crate::{
    Kind, ListOptions, MetadataClient, ObjectKey, Patch, RequestError, RestClient, WriteOptions,
};

/// Field manager of the requests.
const MANAGER: &str = "opkit-migrate";
/// Number of attempts to write `status.storedVersions` while other clients change the CRD.
const STATUS_ATTEMPTS: usize = 5;
/// Time limit for the API server to use the storage version of the CRD.
const IN_FORCE_MAX: Duration = Duration::from_secs(30);
/// Interval at which the storage version that the API server uses is read.
const IN_FORCE_POLL: Duration = Duration::from_millis(200);
/// Number of times that a request is repeated when the server has too many requests.
const BUSY_ATTEMPTS: usize = 20;
/// Time between two such requests.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// Number of failed objects that an error lists.
const SHOWN_MAX: usize = 5;

/// Options of a [`StorageMigration`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MigrationOptions {
    /// Objects in one page of the list.
    pub page_size: u32,
    /// Maximum number of objects that are rewritten in one second.
    pub rate: u32,
    /// Maximum number of requests at the same time.
    pub concurrency: usize,
}

impl Default for MigrationOptions {
    fn default() -> Self {
        Self {
            page_size: 500,
            rate: 250,
            concurrency: 8,
        }
    }
}

/// Progress of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationProgress {
    /// Objects that were rewritten, or that need not be rewritten.
    pub done: u64,
    /// Estimated number of all objects.
    pub total: u64,
}

/// Migration of the stored objects of one CRD.
///
/// # Examples
/// ```
/// use opkit_client::{MigrationError, MigrationOptions, StorageMigration};
///
/// async fn migrate(kube: kube::Client) -> Result<(), MigrationError> {
///     let migration = StorageMigration::of(kube, "robots.example.com").await?;
///     let progress = migration
///         .run(&MigrationOptions::default(), &mut |_| {})
///         .await?;
///     println!("{} objects are stored as {}", progress.done, migration.storage_version());
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StorageMigration {
    rest: RestClient,
    metadata: MetadataClient,
    crd: String,
    kind: Kind,
    storage: String,
    stored: Vec<String>,
}

#[derive(Deserialize)]
struct Crd {
    metadata: CrdMetadata,
    spec: CrdSpec,
    #[serde(default)]
    status: CrdStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CrdMetadata {
    #[serde(default)]
    resource_version: String,
}

#[derive(Deserialize)]
struct CrdSpec {
    group: String,
    scope: String,
    names: CrdNames,
    versions: Vec<CrdVersion>,
}

#[derive(Deserialize)]
struct CrdNames {
    kind: String,
    plural: String,
}

#[derive(Deserialize)]
struct CrdVersion {
    name: String,
    served: bool,
    storage: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CrdStatus {
    #[serde(default)]
    stored_versions: Vec<String>,
}

impl StorageMigration {
    /// Reads the CRD with this name, such as `robots.example.com`.
    ///
    /// # Errors
    /// If the CRD cannot be read, or serves no version.
    pub async fn of(kube: kube::Client, crd: &str) -> Result<Self, MigrationError> {
        let rest = RestClient::new(kube.clone());
        let found = read(&rest, crd).await?;
        let versions = &found.spec.versions;
        let storage = versions.iter().find(|version| version.storage);
        let mut served = versions.iter().filter(|version| version.served);
        // Objects are listed in the storage version if possible, which needs no conversion later.
        let listed = storage.filter(|it| it.served).or_else(|| served.next());
        let (Some(storage), Some(listed)) = (storage, listed) else {
            return Err(MigrationError::NotServed {
                crd: crd.to_owned(),
            });
        };
        Ok(Self {
            rest,
            metadata: MetadataClient::new(kube).with(WriteOptions::for_manager(MANAGER)),
            crd: crd.to_owned(),
            kind: Kind {
                group: found.spec.group,
                version: listed.name.clone(),
                kind: found.spec.names.kind,
                plural: found.spec.names.plural,
                namespaced: found.spec.scope == "Namespaced",
            },
            storage: storage.name.clone(),
            stored: found.status.stored_versions,
        })
    }

    /// Returns the version in which objects are stored.
    pub fn storage_version(&self) -> &str {
        &self.storage
    }

    /// Returns the other versions in which objects may still be stored.
    pub fn old_versions(&self) -> Vec<&str> {
        let stored = self.stored.iter().map(String::as_str);
        stored.filter(|version| *version != self.storage).collect()
    }

    /// Rewrites all objects, and removes the old versions from `status.storedVersions` of the CRD.
    /// `report` is called after each object.
    ///
    /// # Errors
    /// If a request fails, except for an object that was changed or deleted meanwhile. Objects that
    /// the server refuses are reported at the end, after all others were rewritten; then the CRD is
    /// not changed.
    ///
    /// # Cancel safety
    /// The migration can be dropped at any time and started again.
    pub async fn run(
        &self,
        options: &MigrationOptions,
        report: &mut (dyn FnMut(MigrationProgress) + Send),
    ) -> Result<MigrationProgress, MigrationError> {
        self.wait_until_in_force().await?;
        let mut progress = MigrationProgress::default();
        let mut refused: Vec<(String, RequestError)> = Vec::new();
        let mut pace = Pace::new(options.rate);
        let mut list = ListOptions::new().limit(options.page_size);
        loop {
            let page = match when_ready(|| self.metadata.list(&self.kind, &list)).await {
                Ok(page) => page,
                Err(error) if error.is_expired() => {
                    // The list took longer than the server keeps its state. The objects that follow
                    // are read as they are now.
                    list = self.after_expiry(&error, options);
                    if list.continue_token.is_none() {
                        progress = MigrationProgress::default();
                    }
                    continue;
                }
                Err(cause) => return Err(MigrationError::list(&self.crd, cause)),
            };
            let keys = page.items.iter().map(|item| {
                let version = item.metadata.resource_version.clone();
                (ObjectKey::of(&item.metadata), version.unwrap_or_default())
            });
            let keys: Vec<(ObjectKey, String)> = keys.collect();
            let remaining = page.metadata.remaining_item_count.unwrap_or_default();
            let seen = progress.done.saturating_add(keys.len() as u64);
            progress.total = seen.saturating_add(u64::try_from(remaining).unwrap_or_default());
            let mut running = FuturesUnordered::new();
            for (key, version) in keys {
                while running.len() >= options.concurrency.max(1) {
                    let finished = running.next().await;
                    self.count(finished, &mut progress, &mut refused, report)?;
                }
                pace.wait().await;
                running.push(self.rewrite(key, version));
            }
            while let Some(finished) = running.next().await {
                self.count(Some(finished), &mut progress, &mut refused, report)?;
            }
            match page.continue_token() {
                Some(token) => {
                    list = ListOptions::new()
                        .limit(options.page_size)
                        .continue_from(token);
                }
                None => break,
            }
        }
        if !refused.is_empty() {
            return Err(refusal(&self.crd, refused));
        }
        self.clean().await?;
        Ok(progress)
    }

    /// Waits until the API server stores objects in the storage version of the CRD, which takes a
    /// moment after a change of the CRD. Otherwise the objects would be rewritten in the old
    /// version. The API server publishes a hash of the version in its discovery documents.
    async fn wait_until_in_force(&self) -> Result<(), MigrationError> {
        let Kind { group, version, .. } = &self.kind;
        let expected = storage_version_hash(group, &self.storage, &self.kind.kind);
        let path = format!("/apis/{group}/{version}");
        let deadline = Instant::now() + IN_FORCE_MAX;
        loop {
            let document = self.rest.request(Method::GET, &path).typed::<Value>().await;
            let document = document.map_err(|cause| MigrationError::list(&self.crd, cause))?;
            let resources = document.get("resources").and_then(Value::as_array);
            let text = |resource: &Value, name: &str| {
                let value = resource.get(name).and_then(Value::as_str);
                value.map(str::to_owned)
            };
            let mut resources = resources.into_iter().flatten();
            let found = resources.find(|it| text(it, "name").as_ref() == Some(&self.kind.plural));
            match found.and_then(|it| text(it, "storageVersionHash")) {
                Some(found) if found != expected && Instant::now() < deadline => {
                    tokio::time::sleep(IN_FORCE_POLL).await;
                }
                Some(found) if found != expected => {
                    return Err(MigrationError::NotInForce {
                        crd: self.crd.clone(),
                        storage: self.storage.clone(),
                        timeout: IN_FORCE_MAX,
                    });
                }
                _ => return Ok(()),
            }
        }
    }

    /// Sends a change that changes nothing. The server writes the object if it is not stored in the
    /// storage version.
    async fn rewrite(&self, key: ObjectKey, version: String) -> (ObjectKey, Option<RequestError>) {
        // If the object was changed meanwhile, then it is stored in the storage version already.
        let patch = json!({"metadata": {"resourceVersion": version}});
        let write = || {
            self.metadata
                .patch(&self.kind, key.clone(), Patch::Merge(&patch))
        };
        let error = match when_ready(write).await {
            Ok(_) => None,
            Err(error) if error.is_conflict() || error.is_not_found() => None,
            Err(error) => Some(error),
        };
        (key, error)
    }

    fn count(
        &self,
        finished: Option<(ObjectKey, Option<RequestError>)>,
        progress: &mut MigrationProgress,
        refused: &mut Vec<(String, RequestError)>,
        report: &mut (dyn FnMut(MigrationProgress) + Send),
    ) -> Result<(), MigrationError> {
        if let Some((key, Some(error))) = finished {
            if !error.is_invalid() && !error.is_forbidden() {
                return Err(MigrationError::Rewrite {
                    object: format!("{} {key}", self.kind.kind),
                    cause: Box::new(error),
                });
            }
            refused.push((key.to_string(), error));
        }
        progress.done = progress.done.saturating_add(1);
        progress.total = progress.total.max(progress.done);
        report(*progress);
        Ok(())
    }

    /// Returns the list that continues after the server has forgotten the state of the list: with
    /// the token of its response, or else from the start.
    fn after_expiry(&self, error: &RequestError, options: &MigrationOptions) -> ListOptions {
        let list = ListOptions::new().limit(options.page_size);
        let metadata = error.status().and_then(|status| status.metadata.as_ref());
        match metadata.and_then(|metadata| metadata.continue_.as_deref()) {
            Some(token) if !token.is_empty() => list.continue_from(token),
            _ => list,
        }
    }

    /// Removes the old versions from `status.storedVersions`, unless the storage version has
    /// changed since the migration started.
    async fn clean(&self) -> Result<(), MigrationError> {
        let kind = crd_kind();
        let key = ObjectKey::from(self.crd.as_str());
        let options = WriteOptions::for_manager(MANAGER);
        let mut conflict = None;
        for _ in 0..STATUS_ATTEMPTS {
            let found = read(&self.rest, &self.crd).await?;
            let mut versions = found.spec.versions.iter();
            let is_same = versions.any(|it| it.storage && it.name == self.storage);
            if !is_same {
                return Err(MigrationError::StorageChanged {
                    crd: self.crd.clone(),
                    storage: self.storage.clone(),
                });
            }
            if found.status.stored_versions == [self.storage.as_str()] {
                return Ok(());
            }
            let patch = json!({
                "metadata": {"resourceVersion": found.metadata.resource_version},
                "status": {"storedVersions": [self.storage]},
            });
            let patched =
                self.rest
                    .patch(&kind, &key, Some("status"), Patch::Merge(&patch), &options);
            match patched.await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() => conflict = Some(error),
                Err(cause) => return Err(MigrationError::status(&self.crd, cause)),
            }
        }
        match conflict {
            Some(cause) => Err(MigrationError::status(&self.crd, cause)),
            None => Ok(()),
        }
    }
}

/// Repeats a request while the server responds with 429 or 503. A server does so for a moment after
/// a CRD has changed. A second write of an object is refused as a conflict, so nothing is written
/// twice.
async fn when_ready<T, F: Future<Output = Result<T, RequestError>>>(
    request: impl Fn() -> F,
) -> Result<T, RequestError> {
    for _ in 0..BUSY_ATTEMPTS {
        match request().await {
            Err(error) if is_busy(&error) => tokio::time::sleep(BUSY_WAIT).await,
            outcome => return outcome,
        }
    }
    request().await
}

fn is_busy(error: &RequestError) -> bool {
    error
        .status()
        .is_some_and(|status| matches!(status.code, 429 | 503))
}

/// Returns the hash of a storage version, as Kubernetes computes it.
fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let text = format!("{group}/{version}/{kind}");
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let bytes = digest.as_ref();
    BASE64_STANDARD.encode(bytes.get(..8).unwrap_or(bytes))
}

fn refusal(crd: &str, refused: Vec<(String, RequestError)>) -> MigrationError {
    let names: BTreeSet<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    let mut shown: Vec<&str> = names.iter().copied().take(SHOWN_MAX).collect();
    if names.len() > SHOWN_MAX {
        shown.push("...");
    }
    let (objects, count) = (shown.join(", "), names.len());
    let mut errors = refused.into_iter().map(|(_, error)| error);
    MigrationError::Refused {
        crd: crd.to_owned(),
        objects,
        count,
        cause: errors.next().map(Box::new),
    }
}

fn crd_kind() -> Kind {
    Kind {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
        namespaced: false,
    }
}

async fn read(rest: &RestClient, crd: &str) -> Result<Crd, MigrationError> {
    let body = rest.get(&crd_kind(), &ObjectKey::from(crd)).await;
    let body = body.map_err(|cause| MigrationError::Read {
        crd: crd.to_owned(),
        cause: Box::new(cause),
    })?;
    serde_json::from_slice::<Value>(&body)
        .and_then(serde_json::from_value)
        .map_err(|cause| MigrationError::Decode {
            crd: crd.to_owned(),
            cause,
        })
}

/// Limits the number of requests in a second.
struct Pace {
    interval: Duration,
    next: Instant,
}

impl Pace {
    fn new(rate: u32) -> Self {
        Self {
            interval: Duration::from_secs(1).checked_div(rate).unwrap_or_default(),
            next: Instant::now(),
        }
    }

    /// Waits until the next request may be sent. Time without requests is not saved up.
    async fn wait(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.next = self.next.max(Instant::now() - self.interval) + self.interval;
    }
}

#[cfg(test)]
mod tests;
