//! The context for functions that create a state: a client, the caches and an event recorder.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opkit_cache::{Informer, InformerFactory, InformerOptions, Lister, Selection};
use opkit_client::{Kind, Object, ObjectKey};
use opkit_events::EventRecorder;

use crate::error::{ManagerError, ReadError};
use crate::reads::{Declared, Watched};

/// The context for a function that creates a state (see
/// [`Manager::state_with`](crate::Manager::state_with)): a client, the caches and an event
/// recorder. Cloning is cheap.
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

    /// Returns the caches of the kinds that the operator's controllers declare.
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

/// The caches of the cluster that the operator runs in. Their informers may not be started yet.
pub(crate) struct Caches {
    pub(crate) factory: Arc<InformerFactory>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) options: HashMap<TypeId, InformerOptions>,
    pub(crate) timeout: Duration,
}

impl Caches {
    /// Starts the informers that are not running yet, and returns reads from their caches.
    pub(crate) fn start(&self) -> Reads {
        let mut declared = Declared::default();
        // Whole objects come after metadata: if a kind is cached in both forms, whole objects are
        // read.
        let (metadata, whole): (Vec<_>, Vec<_>) =
            self.watched.iter().partition(|it| it.metadata_only);
        for watched in metadata.into_iter().chain(whole) {
            if let Some(id) = watched.type_id {
                let informer = watched.start(&self.factory, &self.options);
                declared.typed.insert(id, informer);
            }
        }
        Reads {
            declared: Arc::new(declared),
            factory: self.factory.clone(),
            timeout: self.timeout,
        }
    }
}

/// Reads from the caches of the kinds that the operator's controllers and webhooks declare, in the
/// cluster that the operator runs in. Cloning is cheap; a task that a state spawns can keep a
/// clone.
#[derive(Clone)]
pub struct Reads {
    declared: Arc<Declared>,
    factory: Arc<InformerFactory>,
    timeout: Duration,
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
    /// When no controller declares the kind, the initial list of the kind has not been received, or
    /// the object cannot be decoded as its Rust type.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.get(&key.into())?)
    }

    /// Returns the selected objects from the cache. A selection without a namespace selects all
    /// namespaces.
    ///
    /// # Errors
    /// When no controller declares the kind, or the initial list of the kind has not been received.
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
