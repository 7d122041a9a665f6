//! Client that reads from the cache and writes to the API. Reads through the client show its writes
//! immediately.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{Client, Deleted, Kind, Object, ObjectKey, Patch, RequestError};

use crate::{CacheReadError, Informer, InformerFactory, Lister, ObjectError, Selection, SyncError};

/// Time that a read waits for the first list of its kind, as the manager waits at its start.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// Client that reads from the cache and writes to the API. Reads through the client, including
/// lists by label or index, show writes through the client before the watch reports them.
///
/// Only kinds with a started informer are read from the cache. Reads of other kinds return an
/// error, so that no kind is cached by accident. With [`live_reads`](CachedClient::live_reads),
/// reads of other kinds are sent to the API instead. A read waits until the informer has completed
/// its first list, 2 min at most; after the informer has stopped, a read is an error.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_cache::{CachedClient, InformerFactory, CacheReadError, Selection};
/// use opkit_client::Client;
///
/// async fn count(client: Client, factory: Arc<InformerFactory>) -> Result<usize, CacheReadError> {
///     let _maps = factory.informer::<ConfigMap>(); // cached as long as this is held
///     let client = CachedClient::new(client, factory);
///     let settings = client.get::<ConfigMap>(("default", "settings")).await?;
///     Ok(client.list::<ConfigMap>(&Selection::default()).await?.len() + settings.iter().len())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct CachedClient {
    client: Client,
    informers: Informers,
    live_reads: bool,
    sync_timeout: Duration,
}

/// Informers that a client reads.
#[derive(Debug, Clone)]
enum Informers {
    /// Those that the factory has started.
    Started(Arc<InformerFactory>),
    /// One of each Rust type.
    Given(Arc<HashMap<TypeId, Informer>>),
}

impl CachedClient {
    /// Creates a client that reads through the informers of `factory` and writes through `client`.
    pub fn new(client: Client, factory: Arc<InformerFactory>) -> Self {
        Self {
            client,
            informers: Informers::Started(factory),
            live_reads: false,
            sync_timeout: SYNC_TIMEOUT,
        }
    }

    /// Creates a client that reads these informers and writes through `client`. Of several
    /// informers of one Rust type, the last is read.
    pub fn of_informers(client: Client, informers: impl IntoIterator<Item = Informer>) -> Self {
        let informers = informers.into_iter();
        let informers = informers.map(|informer| (informer.type_id(), informer));
        Self {
            client,
            informers: Informers::Given(Arc::new(informers.collect())),
            live_reads: false,
            sync_timeout: SYNC_TIMEOUT,
        }
    }

    /// Sends reads of kinds that are not cached to the API.
    pub fn live_reads(mut self) -> Self {
        self.live_reads = true;
        self
    }

    /// Sets the time that a read waits for the first list of its kind; 2 min by default.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Returns the underlying client, which always reads from the API.
    pub fn live(&self) -> &Client {
        &self.client
    }

    /// Returns an object from the cache. An object whose body was evicted by a memory budget is
    /// read from the API.
    ///
    /// # Errors
    /// If the kind is not cached, its first list takes too long, its informer has stopped, the
    /// object does not match its type, or a request to the API fails.
    ///
    /// # Cancel safety
    /// Safe to drop at any time.
    pub async fn get<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<K>>, CacheReadError> {
        match self.lister::<K>()? {
            Some(lister) => {
                self.usable(&lister).await?;
                Ok(lister.fetch(&key.into()).await?)
            }
            None => Ok(self.client.get_opt(key).await?.map(Arc::new)),
        }
    }

    /// Returns the selected objects from the cache. Objects whose body was evicted by a memory
    /// budget are read from the API one by one; objects that do not match their type are left out.
    ///
    /// # Errors
    /// If the kind is not cached, even with `live_reads`, if its first list takes too long, if its
    /// informer has stopped, or if a request to the API fails. To list from the API with paging,
    /// use [`live`](CachedClient::live).
    ///
    /// # Cancel safety
    /// Safe to drop at any time.
    pub async fn list<K: Object>(
        &self,
        selection: &Selection,
    ) -> Result<Vec<Arc<K>>, CacheReadError> {
        let lister = self.started::<K>().ok_or_else(not_cached::<K>)?;
        self.usable(&lister).await?;
        let mut objects = Vec::new();
        for stored in lister.stored(selection) {
            match stored.get() {
                Ok(object) => objects.push(object),
                Err(error) if matches!(&*error, ObjectError::Evicted { .. }) => {
                    objects.extend(lister.fetch(&stored.key()).await?);
                }
                Err(_) => {}
            }
        }
        Ok(objects)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// Same as [`Client::create`].
    ///
    /// # Cancel safety
    /// As with every write, after the future is dropped it is unknown whether the server has acted.
    pub async fn create<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.create(object).await?))
    }

    /// Replaces an object. If `object` has a resourceVersion, the server rejects the update unless
    /// that is the object's current resourceVersion.
    ///
    /// # Errors
    /// Same as [`Client::update`].
    ///
    /// # Cancel safety
    /// Same as [`create`](CachedClient::create).
    pub async fn update<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.update(object).await?))
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// Same as [`Client::update`].
    ///
    /// # Cancel safety
    /// Same as [`create`](CachedClient::create).
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.status().update(object).await?))
    }

    /// Patches an object.
    ///
    /// # Errors
    /// Same as [`Client::patch`].
    ///
    /// # Cancel safety
    /// Same as [`create`](CachedClient::create).
    pub async fn patch<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.patch(key, patch).await?))
    }

    /// Applies an object server-side.
    ///
    /// # Errors
    /// Same as [`Client::apply`].
    ///
    /// # Cancel safety
    /// Same as [`create`](CachedClient::create).
    pub async fn apply<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.apply(object).await?))
    }

    /// Deletes an object if its UID on the server is still that of `object`. If the server's
    /// response shows that the object is deleted, reads no longer return the object. If the object
    /// remains because of its finalizers or its grace period, reads return the object with its
    /// deletion timestamp.
    ///
    /// # Errors
    /// Same as [`Client::delete`].
    ///
    /// # Cancel safety
    /// Same as [`create`](CachedClient::create).
    pub async fn delete<K: Object>(&self, object: &K) -> Result<Deleted<Arc<K>>, RequestError> {
        if let Deleted::Terminating(object) = self.client.delete(object).await? {
            return Ok(Deleted::Terminating(self.observed(object)));
        }
        let (meta, key) = (object.meta(), ObjectKey::of(object.meta()));
        if let (Some(lister), Some(uid)) = (self.observing::<K>(), &meta.uid) {
            let version = meta.resource_version.as_deref();
            lister.informer().observe_deletion(&key, uid, version);
        }
        Ok(Deleted::Gone)
    }

    fn started<K: Object>(&self) -> Option<Lister<K>> {
        match &self.informers {
            Informers::Started(factory) => factory.started(),
            Informers::Given(informers) => informers.get(&TypeId::of::<K>())?.lister(),
        }
    }

    /// Waits until the first list is complete.
    async fn usable<K: Object>(&self, lister: &Lister<K>) -> Result<(), CacheReadError> {
        let informer = lister.informer();
        match tokio::time::timeout(self.sync_timeout, informer.is_usable()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(CacheReadError::Stopped {
                kind: Box::new(Kind::of::<K>()),
            }),
            Err(_) => Err(CacheReadError::Sync(SyncError::Timeout {
                kind: Box::new(Kind::of::<K>()),
                seconds: self.sync_timeout.as_secs(),
                last_error: informer.last_error(),
            })),
        }
    }

    fn lister<K: Object>(&self) -> Result<Option<Lister<K>>, CacheReadError> {
        match self.started::<K>() {
            None if !self.live_reads => Err(not_cached::<K>()),
            lister => Ok(lister),
        }
    }

    /// Returns the lister to whose informer the responses to writes are passed. `None` if the kind
    /// has no informer, or if the client is a dry run, whose writes the server does not persist.
    fn observing<K: Object>(&self) -> Option<Lister<K>> {
        let lister = self.started::<K>();
        lister.filter(|_| !self.client.is_dry_run())
    }

    fn observed<K: Object>(&self, object: K) -> Arc<K> {
        if let Some(lister) = self.observing::<K>()
            && let Ok(json) = serde_json::to_vec(&object)
        {
            lister.informer().observe_response(&json);
        }
        Arc::new(object)
    }
}

fn not_cached<K: Object>() -> CacheReadError {
    CacheReadError::NotCached {
        kind: Box::new(Kind::of::<K>()),
    }
}

#[cfg(test)]
mod tests;
