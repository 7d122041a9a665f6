//! What the server serves: groups, versions and resources, found out once and kept.
//!
//! Two requests tell all of it where the server has aggregated discovery; else each version of each
//! group is asked. A group that cannot be read, such as one whose aggregated server is down, does
//! not spoil the others, and is named.

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

/// Asks the server what it serves, and remembers the answer. Cloning gives another handle on the
/// same memory.
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
    memory: Mutex<Memory>,
    /// Held by the one that asks the server; the others wait for its answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Memory {
    discovered: Option<Arc<Discovered>>,
    /// How often a request to the server was begun.
    begun: u64,
    /// Which of these brought what is remembered.
    answered: u64,
    /// Whether the disk may still be believed.
    distrust_disk: bool,
}

impl Discovery {
    /// Remembers in memory.
    pub fn new(kube: kube::Client) -> Self {
        Self::build(kube, None)
    }

    /// Remembers in memory and in files that other processes share.
    pub fn with_disk(kube: kube::Client, disk: DiskCache) -> Self {
        Self::build(kube, Some(disk))
    }

    fn build(kube: kube::Client, disk: Option<DiskCache>) -> Self {
        Self {
            inner: Arc::new(Inner {
                rest: RestClient::new(kube),
                disk,
                memory: Mutex::default(),
                asking: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// What is remembered, or else what the server says.
    ///
    /// # Errors
    /// If the server does not say which groups it has. Groups that could not be read are
    /// [`Discovered::failures`].
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn get(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let known = self.inner.memory.lock().discovered.clone();
        match known {
            Some(known) => Ok(known),
            None => self.ask(0, true).await,
        }
    }

    /// Asks the server again. Of several that wait to ask, one does; a request that has begun
    /// before is not enough, as it may have seen less.
    ///
    /// # Errors
    /// As [`get`](Discovery::get); what was remembered stays.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn refresh(&self) -> Result<Arc<Discovered>, DiscoveryError> {
        let begun = self.inner.memory.lock().begun;
        self.ask(begun, false).await
    }

    /// Forgets what is in memory, and does not believe the disk until the server was asked.
    pub fn invalidate(&self) {
        let mut memory = self.inner.memory.lock();
        memory.discovered = None;
        memory.distrust_disk = true;
    }

    /// Asks unless an answer is remembered whose request began after the first `begun` ones.
    async fn ask(&self, begun: u64, or_disk: bool) -> Result<Arc<Discovered>, DiscoveryError> {
        let inner = &self.inner;
        let _asking = inner.asking.lock().await;
        let distrust_disk = {
            let memory = inner.memory.lock();
            let newer = memory.answered > begun || or_disk;
            if let Some(known) = memory.discovered.clone().filter(|_| newer) {
                return Ok(known);
            }
            memory.distrust_disk
        };
        if let Some(disk) = inner.disk.as_ref().filter(|_| or_disk && !distrust_disk)
            && let Some(found) = disk.read().await
        {
            let found = Arc::new(found);
            inner.memory.lock().discovered = Some(found.clone());
            return Ok(found);
        }
        let number = {
            let mut memory = inner.memory.lock();
            memory.begun = memory.begun.saturating_add(1);
            memory.begun
        };
        let found = Arc::new(fetch::everything(&inner.rest).await?);
        {
            let mut memory = inner.memory.lock();
            memory.discovered = Some(found.clone());
            memory.answered = number;
            memory.distrust_disk = false;
        }
        // What lacks a group now may have it in a minute; others shall not learn it for hours.
        if let Some(disk) = inner.disk.as_ref().filter(|_| found.failures.is_empty()) {
            disk.write(found.clone()).await;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
