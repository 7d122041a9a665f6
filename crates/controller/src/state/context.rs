//! The context for functions that create a state: clients, the caches, an event recorder, and the
//! leadership of this process.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opkit_cache::{CachedClient, Informer, InformerFactory, Lister, Selection};
use opkit_client::{Client, Kind, Object, ObjectKey};
use opkit_events::EventRecorder;
use opkit_leaderelection::Leadership;
use tokio::sync::watch;

use super::Caches;
use crate::error::{ManagerError, ReadError};
use crate::reads::{Declared, Watched};

/// The context for a function that creates a state (see
/// [`Manager::state_with`](crate::Manager::state_with)): clients, the caches, an event recorder,
/// and the leadership of this process. Cloning is cheap.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Result, Selection, StateContext};
///
/// struct App {
///     maps: usize,
/// }
///
/// async fn connect(cx: StateContext) -> Result<App> {
///     let reads = cx.reads();
///     reads.synced().await?;
///     Ok(App { maps: reads.list::<ConfigMap>(Selection::default())?.len() })
/// }
/// ```
#[derive(Clone)]
pub struct StateContext {
    pub(crate) client: kube::Client,
    pub(crate) events: EventRecorder,
    pub(crate) caches: Arc<Caches>,
    pub(crate) leadership: watch::Receiver<Leadership>,
}

impl fmt::Debug for StateContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateContext").finish_non_exhaustive()
    }
}

impl StateContext {
    /// Returns a client of the cluster. In a state for tasks that need leadership, the client
    /// refuses to write after the leader term for which the state was created.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Returns a client that reads the declared kinds from the cache and writes to the API. Its
    /// reads wait until the cache of the kind is filled, for the manager's `cache_sync_timeout` at
    /// most. They show the writes through the client, and are errors after the operator has
    /// stopped. Writes are limited as those of [`client`](Self::client) are. In a sharded operator,
    /// a kind is cached in part: see [`lister`](Self::lister).
    pub fn cached_client(&self) -> CachedClient {
        let client = Client::new(self.client());
        CachedClient::of_informers(client, self.caches.informers())
            .sync_timeout(self.caches.timeout)
    }

    /// Returns a lister of a declared kind, which reads the cache.
    ///
    /// In a sharded operator, the lister of a kind that only controllers declare has the objects
    /// In a sharded operator, the lister of a kind that only controllers declare has the objects
    /// that the controllers of this replica cache: those of its slots. It has none until it owns
    /// slots.
    /// A kind that the operator or a webhook declares for reading is cached whole in addition.
    ///
    /// # Errors
    /// When nothing declares the kind, the initial list of the kind has not been received, or the
    /// operator has stopped.
    pub fn lister<K: Object>(&self) -> Result<Lister<K>, ReadError> {
        let lister = self.caches.lister::<K>()?;
        let kind = || Box::new(Kind::of::<K>());
        if lister.informer().is_stopped() {
            return Err(ReadError::Stopped { kind: kind() });
        }
        match lister.informer().is_synced() {
            true => Ok(lister),
            false => Err(ReadError::NotSynced { kind: kind() }),
        }
    }

    /// Returns the informer of a declared kind, to [listen](Informer::listen) for changes and to
    /// [add indexes](Informer::add_index). The initial list of the kind may not have been received
    /// yet.
    ///
    /// # Errors
    /// When nothing declares the kind, or the operator has stopped.
    pub fn informer<K: Object>(&self) -> Result<Informer, ReadError> {
        let informer = self.caches.lister::<K>()?.informer().clone();
        match informer.is_stopped() {
            true => Err(ReadError::Stopped {
                kind: Box::new(Kind::of::<K>()),
            }),
            false => Ok(informer),
        }
    }

    /// Same as [`informer`](Self::informer), for a kind that a controller declares at run time.
    ///
    /// # Errors
    /// When no controller declares the kind, or the operator has stopped.
    pub fn dynamic_informer(&self, kind: &Kind) -> Result<Informer, ReadError> {
        let informer = self.caches.dynamic(kind)?;
        match informer.is_stopped() {
            true => Err(ReadError::Stopped {
                kind: Box::new(kind.clone()),
            }),
            false => Ok(informer),
        }
    }

    /// Returns a watch of the leadership of this process: whether it is the leader, and in which
    /// term. Without leader election, the process leads in term 1 from the start of the tasks that
    /// need leadership until the operator stops.
    ///
    /// The watch may report the end of a term late. A task that writes as the leader must not
    /// depend on it: it must be a runnable that needs leadership, whose client refuses to write
    /// after the term.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// Returns the caches of the kinds that the operator declares. In a sharded operator, a kind is
    /// cached in part: see [`lister`](Self::lister).
    ///
    /// Without leader election a state is created before the caches are filled: call
    /// [`synced`](Reads::synced) before the first read.
    pub fn reads(&self) -> Reads {
        self.caches.start()
    }

    /// Returns an event recorder, for events about objects that are not being reconciled. In a
    /// state for tasks that need leadership, events are posted only while this process is the
    /// leader.
    pub fn recorder(&self) -> EventRecorder {
        self.events.clone()
    }
}

/// Reads from the caches of the kinds that the operator, its controllers and webhooks declare, in
/// the cluster that the operator runs in. Cloning is cheap; a task that a state spawns can keep a
/// clone.
#[derive(Clone)]
pub struct Reads {
    pub(super) declared: Arc<Declared>,
    pub(super) factory: Arc<InformerFactory>,
    pub(super) timeout: Duration,
}

impl fmt::Debug for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reads")
            .field("kinds", &self.declared.typed.len())
            .finish_non_exhaustive()
    }
}

impl Reads {
    /// Waits until all caches have received their initial list.
    ///
    /// # Errors
    /// When the initial lists take longer than the manager's `cache_sync_timeout`; the error names
    /// the kind.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect; the method can be called again.
    pub async fn synced(&self) -> Result<(), ManagerError> {
        let synced = self.factory.wait_for_sync(self.timeout).await;
        synced.map_err(ManagerError::Sync)
    }

    /// Returns one object from the cache, or `None` if the cache does not have it.
    ///
    /// # Errors
    /// When nothing declares the kind, the initial list of the kind has not been received, or the
    /// object cannot be decoded as its Rust type.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.get(&key.into())?)
    }

    /// Returns the selected objects from the cache. A selection without a namespace selects all
    /// namespaces.
    ///
    /// # Errors
    /// When nothing declares the kind, or the initial list of the kind has not been received.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.list(&selection.into()))
    }

    /// Returns the informer of a kind.
    pub(crate) fn informer(&self, watched: &Watched) -> Option<&Informer> {
        self.declared.typed.get(&watched.type_id?)
    }

    fn lister<K: Object>(&self) -> Result<Lister<K>, ReadError> {
        let informer = self.declared.typed.get(&TypeId::of::<K>());
        let found = informer.and_then(|it| Some((it.lister::<K>()?, it.is_synced())));
        let kind = || Box::new(Kind::of::<K>());
        match found {
            Some((lister, true)) => Ok(lister),
            Some((_, false)) => Err(ReadError::NotSynced { kind: kind() }),
            None => Err(ReadError::NotCached { kind: kind() }),
        }
    }
}
