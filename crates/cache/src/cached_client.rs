//! A client that reads the cache and writes the API, and sees its own writes at once.

use std::sync::Arc;

use opkit_client::{Client, Deleted, Kind, Object, ObjectKey, Patch, RequestError};

use crate::{InformerFactory, Lister, ObjectError, ReadError, Selection};

/// Reads from the cache, writes to the API. What it wrote is in its reads at once, also in lists by
/// label or index, before the watch tells it.
///
/// Only kinds whose informer was started are read from the cache. Reading another is refused, so
/// that no kind is cached by accident, unless [`live_reads`](CachedClient::live_reads) sends such
/// reads to the API.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_cache::{CachedClient, InformerFactory, ReadError, Selection};
/// use opkit_client::Client;
///
/// async fn count(client: Client, factory: Arc<InformerFactory>) -> Result<usize, ReadError> {
///     let _maps = factory.informer::<ConfigMap>(); // cached as long as this is held
///     let client = CachedClient::new(client, factory);
///     let settings = client.get::<ConfigMap>(("default", "settings")).await?;
///     Ok(client.list::<ConfigMap>(&Selection::default()).await?.len() + settings.iter().len())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct CachedClient {
    client: Client,
    factory: Arc<InformerFactory>,
    live_reads: bool,
}

impl CachedClient {
    /// Reads through the informers of `factory`, writes through `client`.
    pub fn new(client: Client, factory: Arc<InformerFactory>) -> Self {
        Self {
            client,
            factory,
            live_reads: false,
        }
    }

    /// Sends reads of kinds that are not cached to the API.
    pub fn live_reads(mut self) -> Self {
        self.live_reads = true;
        self
    }

    /// The client below, whose reads are all from the API.
    pub fn live(&self) -> &Client {
        &self.client
    }

    /// An object, from the cache; from the API if its body has given way to a memory budget.
    ///
    /// # Errors
    /// When the kind is not cached, the object does not fit its type, or the API must be asked and
    /// does not answer.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn get<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<K>>, ReadError> {
        match self.lister::<K>()? {
            Some(lister) => Ok(lister.fetch(&key.into()).await?),
            None => Ok(self.client.get_opt(key).await?.map(Arc::new)),
        }
    }

    /// The selected objects, from the cache; those whose body has given way to a memory budget are
    /// read from the API, one by one. Objects that do not fit their type are left out.
    ///
    /// # Errors
    /// When the kind is not cached: lists go to the API through [`live`](CachedClient::live), which
    /// pages. Also when the API must be asked and does not answer.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn list<K: Object>(&self, selection: &Selection) -> Result<Vec<Arc<K>>, ReadError> {
        let lister = self.factory.started::<K>().ok_or_else(not_cached::<K>)?;
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

    /// Makes an object.
    ///
    /// # Errors
    /// As [`Client::create`].
    ///
    /// # Cancel safety
    /// As every write here: dropping the future leaves open whether the server has acted.
    pub async fn create<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.create(object).await?))
    }

    /// Replaces an object, at its resourceVersion if it has one.
    ///
    /// # Errors
    /// As [`Client::update`].
    ///
    /// # Cancel safety
    /// As [`create`](CachedClient::create).
    pub async fn update<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.update(object).await?))
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// As [`Client::update`].
    ///
    /// # Cancel safety
    /// As [`create`](CachedClient::create).
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.status().update(object).await?))
    }

    /// Changes an object.
    ///
    /// # Errors
    /// As [`Client::patch`].
    ///
    /// # Cancel safety
    /// As [`create`](CachedClient::create).
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
    /// As [`Client::apply`].
    ///
    /// # Cancel safety
    /// As [`create`](CachedClient::create).
    pub async fn apply<K: Object>(&self, object: &K) -> Result<Arc<K>, RequestError> {
        Ok(self.observed(self.client.apply(object).await?))
    }

    /// Deletes an object, if it still is the one that was read. The response of the server decides
    /// whether it is gone, and reads do not see it any more, or stays for its finalizers or its
    /// grace period, and reads see it being deleted.
    ///
    /// # Errors
    /// As [`Client::delete`].
    ///
    /// # Cancel safety
    /// As [`create`](CachedClient::create).
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

    fn lister<K: Object>(&self) -> Result<Option<Lister<K>>, ReadError> {
        match self.factory.started::<K>() {
            None if !self.live_reads => Err(not_cached::<K>()),
            lister => Ok(lister),
        }
    }

    /// The lister that takes in responses: none of a dry run, of which the server keeps nothing.
    fn observing<K: Object>(&self) -> Option<Lister<K>> {
        let lister = self.factory.started::<K>();
        lister.filter(|_| !self.client.is_dry_run())
    }

    fn observed<K: Object>(&self, object: K) -> Arc<K> {
        if let Some(lister) = self.observing::<K>()
            && let Ok(json) = serde_json::to_vec(&object)
        {
            lister.informer().observe_answer(&json);
        }
        Arc::new(object)
    }
}

fn not_cached<K: Object>() -> ReadError {
    ReadError::NotCached {
        kind: Box::new(Kind::of::<K>()),
    }
}

#[cfg(test)]
mod tests;
