//! The factory: one informer per kind, started on first use, on tasks of its owner.

use std::any::TypeId;
use std::collections::HashMap;
use std::time::Duration;

use opkit_client::{Object, RestClient};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::object::Codec;
use crate::random::Random;
use crate::reflector::Reflector;
use crate::{Informer, Lister, SyncError};

/// Which part of the cluster is cached. Kinds of the cluster scope are always cached whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All namespaces, by one watch per kind.
    #[default]
    All,
    /// These namespaces, by one watch per kind and namespace.
    Namespaces(Vec<String>),
}

impl Scope {
    /// The namespaces to list one by one, or one `None` for all at once.
    pub fn namespaces(&self, namespaced: bool) -> Vec<Option<String>> {
        match self {
            Scope::Namespaces(names) if namespaced => names.iter().cloned().map(Some).collect(),
            _ => vec![None],
        }
    }
}

/// Starts informers and shares them: a kind is listed and watched once, however many controllers
/// ask for it.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_cache::{InformerFactory, Scope, Selection};
/// use opkit_client::RestClient;
/// use tokio_util::{sync::CancellationToken, task::TaskTracker};
///
/// async fn count(kube: kube::Client) -> Result<usize, opkit_cache::SyncError> {
///     let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
///     let factory =
///         InformerFactory::new(RestClient::new(kube), Scope::All, tasks.clone(), stop.clone());
///     let maps = factory.informer::<ConfigMap>();
///     factory.wait_for_sync(Duration::from_secs(10)).await?;
///     let count = maps.list(&Selection::default().namespace("default")).len();
///     stop.cancel();
///     tasks.close();
///     tasks.wait().await;
///     Ok(count)
/// }
/// ```
#[derive(Debug)]
pub struct InformerFactory {
    client: RestClient,
    scope: Scope,
    tasks: TaskTracker,
    stop: CancellationToken,
    informers: Mutex<HashMap<TypeId, Informer>>,
}

impl InformerFactory {
    /// A factory whose reflectors run on `tasks` until `stop`; the owner of `tasks` joins them.
    pub fn new(
        client: RestClient,
        scope: Scope,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        InformerFactory {
            client,
            scope,
            tasks,
            stop,
            informers: Mutex::default(),
        }
    }

    /// The informer of a kind, started if it is not yet. Must be called within a tokio runtime.
    pub fn informer<K: Object>(&self) -> Lister<K> {
        let mut informers = self.informers.lock();
        let informer = informers.entry(TypeId::of::<K>()).or_insert_with(|| {
            let codec = Codec::of::<K>();
            let namespaces = self.scope.namespaces(codec.kind.namespaced);
            let informer = Informer::new(codec, namespaces.len());
            for namespace in namespaces {
                let reflector = Reflector::new(
                    self.client.clone(),
                    informer.clone(),
                    namespace,
                    Random::new(Random::seed()),
                );
                let stop = self.stop.clone();
                self.tasks.spawn(async move {
                    stop.run_until_cancelled(reflector.run()).await;
                });
            }
            informer
        });
        Lister::new(informer.clone())
    }

    /// A lister of a kind that was started already.
    pub fn started<K: Object>(&self) -> Option<Lister<K>> {
        self.informers
            .lock()
            .get(&TypeId::of::<K>())
            .cloned()
            .map(Lister::new)
    }

    /// Waits until every informer that was started has its first list.
    ///
    /// # Errors
    /// When that takes longer than `timeout`: the error names the kind and what went wrong last.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn wait_for_sync(&self, timeout: Duration) -> Result<(), SyncError> {
        let informers: Vec<_> = self.informers.lock().values().cloned().collect();
        let deadline = tokio::time::Instant::now() + timeout;
        for informer in informers {
            if tokio::time::timeout_at(deadline, informer.wait_for_sync())
                .await
                .is_err()
            {
                return Err(SyncError::Timeout {
                    kind: Box::new(informer.kind().clone()),
                    seconds: timeout.as_secs(),
                    last_error: informer.last_error(),
                });
            }
        }
        Ok(())
    }
}
