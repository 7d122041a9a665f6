//! The factory: one informer per kind, started on first use, on tasks of its owner.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use kube::core::PartialObjectMeta;
use opkit_client::{CollectionOptions, Object, RestClient};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::informer::User;
use crate::object::Codec;
use crate::random::Random;
use crate::reflector::{Reflector, ReflectorOptions};
use crate::{Informer, InformerOptions, Lister, StoreForm, SyncError};

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
    managers: Vec<String>,
    informers: Mutex<HashMap<Identity, Weak<User>>>,
}

/// What makes two requests for an informer the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    type_id: TypeId,
    namespaces: Vec<Option<String>>,
    collection: CollectionOptions,
    form: StoreForm,
}

impl InformerFactory {
    /// A factory whose informers run on `tasks` until `stop`.
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
            managers: Vec::new(),
            informers: Mutex::default(),
        }
    }

    /// Field managers whose entries of `managedFields` all informers keep.
    pub fn keep_managers(mut self, managers: impl IntoIterator<Item = String>) -> Self {
        self.managers.extend(managers);
        self
    }

    /// The informer of a kind, started if it is not yet. It ends with its last user: whoever holds
    /// the lister, a clone of it, its informer or a listener. Must be called within a tokio
    /// runtime.
    pub fn informer<K: Object>(&self) -> Lister<K> {
        self.informer_with(InformerOptions::default())
    }

    /// The informer of the metadata of a kind: the server sends nothing else.
    pub fn metadata<K: Object>(&self) -> Lister<PartialObjectMeta<K>>
    where
        PartialObjectMeta<K>: Object,
    {
        self.informer_with(InformerOptions {
            metadata_only: true,
            ..Default::default()
        })
    }

    /// An informer of part of a kind, or in another form, shared by whoever asks for the same.
    pub fn informer_with<K: Object>(&self, options: InformerOptions) -> Lister<K> {
        self.informer_in(&self.scope, options)
    }

    /// An informer of another scope than the factory's.
    pub fn informer_in<K: Object>(&self, scope: &Scope, mut options: InformerOptions) -> Lister<K> {
        options.managers.extend(self.managers.iter().cloned());
        let codec = Codec::of::<K>();
        let identity = self.identity::<K>(scope, &codec, &options);
        let mut informers = self.informers.lock();
        if let Some(informer) = informers.get(&identity).and_then(Informer::upgrade) {
            drop(informers);
            options
                .indexes
                .into_iter()
                .for_each(|index| informer.add_index(index));
            return Lister::new(informer);
        }
        informers.retain(|_, user| user.strong_count() > 0);
        let stop = self.stop.child_token();
        let informer = Informer::new(
            codec,
            options,
            Some(self.client.clone()),
            identity.namespaces.len(),
            stop.clone(),
        );
        for namespace in identity.namespaces.clone() {
            let reflector = Reflector::with_sink(
                self.client.clone(),
                informer.sink(namespace.clone()),
                ReflectorOptions {
                    namespace,
                    collection: identity.collection.clone(),
                    ..Default::default()
                },
                Random::new(Random::seed()),
            );
            let stop = stop.clone();
            self.tasks.spawn(async move {
                stop.run_until_cancelled(reflector.run()).await;
            });
        }
        informers.insert(identity, informer.downgrade());
        Lister::new(informer)
    }

    /// A lister of a kind that was started with [`informer`](InformerFactory::informer) and is
    /// still in use.
    pub fn started<K: Object>(&self) -> Option<Lister<K>> {
        let options = InformerOptions::default();
        let identity = self.identity::<K>(&self.scope, &Codec::of::<K>(), &options);
        let informers = self.informers.lock();
        informers
            .get(&identity)
            .and_then(Informer::upgrade)
            .map(Lister::new)
    }

    fn identity<K: Object>(
        &self,
        scope: &Scope,
        codec: &Codec,
        options: &InformerOptions,
    ) -> Identity {
        let text = |selector: Option<String>| selector.unwrap_or_default();
        Identity {
            type_id: TypeId::of::<K>(),
            namespaces: scope.namespaces(codec.kind.namespaced),
            collection: CollectionOptions {
                label_selector: text(options.labels.as_ref().map(ToString::to_string)),
                field_selector: text(options.fields.as_ref().map(ToString::to_string)),
                metadata_only: options.metadata_only,
                protobuf: codec.message(options.metadata_only).is_some(),
                ..Default::default()
            },
            form: options.form,
        }
    }

    /// Waits until every informer that was started has its first list.
    ///
    /// # Errors
    /// When that takes longer than `timeout`: the error names the kind and what went wrong last.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn wait_for_sync(&self, timeout: Duration) -> Result<(), SyncError> {
        let informers: Vec<_> = {
            let informers = self.informers.lock();
            informers.values().filter_map(Informer::upgrade).collect()
        };
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
