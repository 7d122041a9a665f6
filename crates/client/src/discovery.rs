//! Discovery of the groups, versions and resources of the server, with a cache.
//!
//! Two requests are enough if the server supports aggregated discovery; otherwise there is one
//! request for each version of each group. If a group cannot be read, for example because its
//! aggregated API server is down, the other groups are still returned, along with the failure.

mod disk;
mod error;
mod fetch;
mod mapper;
mod resource;

use std::sync::Arc;

use parking_lot::Mutex;

pub use self::disk::DiskCache;
pub use self::error::{DiscoveryError, GroupFailure};
pub use self::mapper::RestMapper;
pub use self::resource::{ApiResource, Discovered};
use crate::RestClient;

/// A cache of the groups, versions and resources of the server. Clones share the same cache.
///
/// # Examples
/// ```
/// use opkit_client::{DiscoveryError, Discovery};
///
/// async fn has_gateways(kube: kube::Client) -> Result<bool, DiscoveryError> {
///     let discovered = Discovery::new(kube).get().await?;
///     Ok(discovered.has_group("gateway.networking.k8s.io"))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Discovery {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rest: RestClient,
    disk: Option<DiskCache>,
    cache: Mutex<Cache>,
    /// Held during the requests to the server, so that other callers wait for the result of these
    /// requests.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Cache {
    discovered: Option<Arc<Discovered>>,
    /// Number of fetches from the server that were started.
    started: u64,
    /// Ordinal of the fetch that returned `discovered`; the first fetch is 1.
    fetched: u64,
    /// Whether the disk cache is ignored until the next fetch.
    bypass_disk: bool,
}

impl Discovery {
    /// Creates a cache in memory.
    pub fn new(kube: kube::Client) -> Self {
        Self::build(kube, None)
    }

    /// Creates a cache in memory and in a file that other processes share.
    pub fn with_disk(kube: kube::Client, disk: DiskCache) -> Self {
        Self::build(kube, Some(disk))
    }

    fn build(kube: kube::Client, disk: Option<DiskCache>) -> Self {
        Self {
            inner: Arc::new(Inner {
                rest: RestClient::new(kube),
                disk,
                cache: Mutex::default(),
                fetching: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Returns the cached resources, or fetches them if nothing is cached.
    ///
    /// # Errors
    /// Fails if the list of groups cannot be read. Groups that cannot be read are in
    /// [`Discovered::failures`].
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn get(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let known = self.inner.cache.lock().discovered.clone();
        match known {
            Some(known) => Ok(known),
            None => self.fetch(0, true).await,
        }
    }

    /// Fetches the resources from the server. Concurrent callers share one fetch. A caller never
    /// gets the result of a fetch that started before the call, because such a result may miss
    /// recent changes.
    ///
    /// # Errors
    /// Same as [`get`](Discovery::get). The cache is kept on failure.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn refresh(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let started = self.inner.cache.lock().started;
        self.fetch(started, false).await
    }

    /// Clears the cache in memory, and ignores the cache on disk until the next fetch succeeds.
    pub fn invalidate(&self) {
        let mut cache = self.inner.cache.lock();
        cache.discovered = None;
        cache.bypass_disk = true;
    }

    /// Fetches the resources, unless the cached ones are from a later fetch than number `started`.
    /// With `or_disk`, returns any cached resources, from memory or from disk.
    async fn fetch(&self, started: u64, or_disk: bool) -> Result<Arc<Discovered>, DiscoveryError> {
        let inner = &self.inner;
        let _fetching = inner.fetching.lock().await;
        let bypass_disk = {
            let cache = inner.cache.lock();
            let newer = cache.fetched > started || or_disk;
            if let Some(known) = cache.discovered.clone().filter(|_| newer) {
                return Ok(known);
            }
            cache.bypass_disk
        };
        if let Some(disk) = inner.disk.as_ref().filter(|_| or_disk && !bypass_disk)
            && let Some(found) = disk.read().await
        {
            let found = Arc::new(found);
            inner.cache.lock().discovered = Some(found.clone());
            return Ok(found);
        }
        let started = {
            let mut cache = inner.cache.lock();
            cache.started = cache.started.saturating_add(1);
            cache.started
        };
        let found = Arc::new(fetch::fetch_all(&inner.rest).await?);
        {
            let mut cache = inner.cache.lock();
            cache.discovered = Some(found.clone());
            cache.fetched = started;
            cache.bypass_disk = false;
        }
        // A group that fails now may be available in a minute. Other processes shall not miss it
        // for hours.
        if let Some(disk) = inner.disk.as_ref().filter(|_| found.failures.is_empty()) {
            disk.write(found.clone()).await;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
