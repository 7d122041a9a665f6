//! Factory of informers: starts one informer per kind on first use, and runs its tasks on the
//! `TaskTracker` of the caller.

use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kube::core::PartialObjectMeta;
use opkit_apimachinery::selector::{FieldSelector, LabelSelector};
use opkit_client::{Kind, ListOptions, Object, ResponseFormat, RestClient};
use opkit_random::Random;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::informer::{InformerHandle, InformerSink, Split};
use crate::list_watch::AnySource;
use crate::object::Codec;
use crate::reflector::{ApiSource, FunctionSource, ReflectorLoop, ReflectorOptions, Source};
use crate::{
    CacheMetrics, DynamicObject, Informer, InformerOptions, ListWatch, Lister, Shards, StoreForm,
    SyncError, Transform,
};

/// Namespaces that are cached. Cluster-scoped kinds are always cached completely.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All namespaces, with one watch for each kind.
    #[default]
    All,
    /// Only the given namespaces, with one watch for each kind and namespace.
    Namespaces(Vec<String>),
}

impl Scope {
    /// Returns the namespaces to list separately, sorted and without duplicates, or a single `None`
    /// to list all namespaces in one request.
    pub fn namespaces(&self, namespaced: bool) -> Vec<Option<String>> {
        match self {
            Self::Namespaces(names) if namespaced => {
                let names: BTreeSet<_> = names.iter().cloned().collect();
                names.into_iter().map(Some).collect()
            }
            _ => vec![None],
        }
    }
}

/// Starts and shares informers: a kind is listed and watched once, however many controllers use it.
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
    informers: Informers,
}

/// Informers of a factory that are still in use.
pub(crate) type Informers = Arc<Mutex<HashMap<Identity, Weak<InformerHandle>>>>;

/// Identity of an informer: two requests with equal identities share one informer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    type_id: TypeId,
    /// Kind of the objects; `None` if the Rust type determines the kind.
    kind: Option<Kind>,
    namespaces: Vec<Option<String>>,
    /// Selectors of the requests, without the part of the kind.
    list: ListOptions,
    /// Part of the kind that all watches of the informer read together.
    part: Shards,
    format: ResponseFormat,
    store_form: StoreForm,
    /// ID of the transform; `None` without a transform. Only clones of one transform have the same
    /// ID, so two transforms differ even if they do the same.
    transform: Option<u64>,
    memory_budget: Option<usize>,
    /// ID of a source that was given to [`InformerFactory::informer_from`]; `None` for the API of
    /// the factory.
    source: Option<u64>,
    /// Number that distinguishes informers of the same part of a kind, which
    /// [`InformerFactory::resplit`] can produce. 0 for all others.
    twin: u32,
}

impl Identity {
    /// Returns a description of the informer's namespaces, selectors and options, for metrics.
    pub(crate) fn selector(&self) -> String {
        let list = &self.list;
        let namespaces = self.namespaces.iter().flatten();
        let namespaces = namespaces.map(|name| format!("namespace={name}"));
        let selectors = [&list.label_selector, &list.field_selector];
        let selectors = selectors.into_iter().filter(|text| !text.is_empty());
        let mut parts: Vec<_> = namespaces.chain(selectors.cloned()).collect();
        parts.extend(self.part.range.as_ref().map(|range| {
            let of = if self.part.by_owner { "owners=" } else { "" };
            match range.is_empty() {
                true => format!("{of}nothing"),
                false => format!("{of}{range}"),
            }
        }));
        if self.format.metadata_only {
            parts.push("metadata".to_owned());
        }
        if self.store_form != StoreForm::default() {
            parts.push(format!("{:?}", self.store_form).to_lowercase());
        }
        parts.extend(self.transform.map(|number| format!("transform={number}")));
        parts.extend(self.memory_budget.map(|bytes| format!("budget={bytes}")));
        parts.extend(self.source.map(|number| format!("source={number}")));
        if self.twin > 0 {
            parts.push(format!("twin={}", self.twin));
        }
        parts.join(";")
    }
}

impl InformerFactory {
    /// Creates a factory whose informers run on `tasks` until `stop` is cancelled.
    pub fn new(
        client: RestClient,
        scope: Scope,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        Self {
            client,
            scope,
            tasks,
            stop,
            managers: Vec::new(),
            informers: Informers::default(),
        }
    }

    /// Keeps the entries of the given field managers in `managedFields`, in all informers.
    pub fn keep_managers(mut self, managers: impl IntoIterator<Item = String>) -> Self {
        self.managers.extend(managers);
        self
    }

    /// Returns the informer of a kind, and starts the informer if it is not running. The informer
    /// stops when the last lister, informer or listener of it is dropped, including all clones.
    /// Must be called within a tokio runtime.
    pub fn informer<K: Object>(&self) -> Lister<K> {
        self.informer_with(InformerOptions::default())
    }

    /// Returns an informer of the metadata of a kind. The server sends only the metadata.
    pub fn metadata<K: Object>(&self) -> Lister<PartialObjectMeta<K>>
    where
        PartialObjectMeta<K>: Object,
    {
        self.informer_with(InformerOptions {
            metadata_only: true,
            ..Default::default()
        })
    }

    /// Returns an informer with options. Requests with the same options share one informer; see
    /// [`InformerOptions`].
    pub fn informer_with<K: Object>(&self, options: InformerOptions) -> Lister<K> {
        self.informer_in(&self.scope, options)
    }

    /// Returns an informer of a kind that is known only at run time. The objects are
    /// [`DynamicObject`]s.
    ///
    /// # Examples
    /// ```
    /// use opkit_cache::{InformerFactory, InformerOptions};
    /// use opkit_client::{GroupVersionResource, Kind};
    ///
    /// fn count(factory: &InformerFactory) -> usize {
    ///     let robots = Kind::at(&GroupVersionResource::new("robot.opkit.dev", "v1", "robots"), true);
    ///     factory.dynamic(robots, InformerOptions::default()).len()
    /// }
    /// ```
    pub fn dynamic(&self, kind: Kind, options: InformerOptions) -> Informer {
        self.informer_of(Codec::dynamic(kind), &self.scope, options)
    }

    /// Returns an informer with `scope` instead of the scope of the factory.
    fn informer_in<K: Object>(&self, scope: &Scope, options: InformerOptions) -> Lister<K> {
        Lister::new(self.informer_of(Codec::of::<K>(), scope, options))
    }

    fn informer_of(&self, codec: Codec, scope: &Scope, mut options: InformerOptions) -> Informer {
        options.managers.extend(self.managers.iter().cloned());
        let identity = self.identity(scope, &codec, &options);
        let mut informers = self.informers.lock();
        if let Some(informer) = informers.get(&identity).and_then(Informer::upgrade) {
            drop(informers);
            options
                .indexes
                .into_iter()
                .for_each(|index| informer.add_index(index));
            return informer;
        }
        informers.retain(|_, handle| handle.strong_count() > 0);
        let shards = options.shards.clone();
        let reflectors = shards.parts(&identity.namespaces).len();
        let informer = Informer::new(
            codec,
            options,
            Some(self.client.clone()),
            reflectors,
            self.stop.child_token(),
        );
        self.start(&informer, &shards, &identity);
        informers.insert(identity, informer.downgrade());
        informer
    }

    /// Changes the number of watches of an informer of this factory, or the part of the kind that
    /// the informer caches. The informer is given by a lister or directly. Cached objects stay
    /// readable. The informer lists the objects again, and listeners are notified only of actual
    /// changes. Objects that do not belong to the new part are removed from the informer at once;
    /// listeners receive a deletion that [`has_left`](crate::Delta::has_left). Objects that are new
    /// to the informer are delivered as [initial](crate::Delta::initial).
    ///
    /// Returns a handle that waits for the lists of the new part. Does nothing for an informer of
    /// another factory.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use opkit_cache::{InformerFactory, InformerOptions, ShardKey, Shards, SyncError};
    ///
    /// async fn share(factory: &InformerFactory) -> Result<(), SyncError> {
    ///     let options = InformerOptions::default().shards(Shards::part(ShardKey::Uid, 0, 3));
    ///     let pods = factory.informer_with::<Pod>(options);
    ///     // One of three processes has stopped.
    ///     let half = factory.resplit(&pods, Shards::part(ShardKey::Uid, 0, 2));
    ///     half.wait(Duration::from_secs(10)).await
    /// }
    /// ```
    pub fn resplit(&self, informer: &impl AsRef<Informer>, shards: Shards) -> Resplit {
        let informer = informer.as_ref();
        let handle = informer.downgrade();
        let mut informers = self.informers.lock();
        let known = informers.iter().find(|(_, known)| known.ptr_eq(&handle));
        let Some(mut identity) = known.map(|(identity, _)| identity.clone()) else {
            return Resplit {
                informer: informer.clone(),
                generation: informer.generation(),
            };
        };
        informers.remove(&identity);
        identity.part = shards.selected();
        identity.twin = 0;
        // An informer that already reads the same part stays the shared one.
        while (informers.get(&identity)).is_some_and(|other| other.strong_count() > 0) {
            identity.twin = identity.twin.saturating_add(1);
        }
        let generation = self.start(informer, &shards, &identity);
        informers.insert(identity, handle);
        Resplit {
            informer: informer.clone(),
            generation,
        }
    }

    /// Starts the reflectors of an informer. Returns the number of the split of the kind.
    fn start(&self, informer: &Informer, shards: &Shards, identity: &Identity) -> u64 {
        let parts = shards.parts(&identity.namespaces);
        let split = informer.split(parts.clone(), shards.range.is_none());
        for (part, sink) in parts.into_iter().zip(split.sinks) {
            let mut list = identity.list.clone();
            list.shard_selector = part.selector();
            list.namespace = part.namespace;
            let options = ReflectorOptions {
                list,
                format: identity.format,
                ..Default::default()
            };
            let source = ApiSource::new(self.client.clone(), informer.kind().clone());
            self.reflect(source, sink, options, &split.stop);
        }
        split.generation
    }

    /// Starts a reflector.
    fn reflect(
        &self,
        source: impl Source,
        sink: InformerSink,
        options: ReflectorOptions,
        stop: &CancellationToken,
    ) {
        let random = Random::new(Random::seed());
        let reflector = ReflectorLoop::with_sink(source, sink, options, random);
        let stop = stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(reflector.run()).await;
        });
    }

    /// Returns an informer of a source that need not be the API of this factory. Each call starts
    /// an informer of its own, which [`started`](Self::started) does not return. Must be called
    /// within a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use opkit_cache::{InformerFactory, ListWatch, Lister, ObjectList, SourceEvent};
    ///
    /// fn settings(factory: &InformerFactory) -> Lister<ConfigMap> {
    ///     let list = || async { Ok(ObjectList { objects: Vec::new(), version: "1".to_owned() }) };
    ///     let watch = |_version| async { Ok(futures::stream::pending()) };
    ///     factory.informer_from(ListWatch::new(list, watch))
    /// }
    /// ```
    pub fn informer_from<K: Object>(&self, source: ListWatch<K>) -> Lister<K> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (codec, mut options) = (Codec::of::<K>(), InformerOptions::default());
        options.managers.extend(self.managers.iter().cloned());
        let (mut list, mut client) = (ListOptions::new(), None);
        if let AnySource::Api {
            client: api,
            list: of,
        } = &source.source
        {
            // The server refuses a selector that is not valid.
            let labels = LabelSelector::parse(&of.label_selector).ok();
            options.labels = labels.filter(|labels| !labels.is_empty());
            let fields = FieldSelector::parse(&of.field_selector).ok();
            options.fields = fields.filter(|fields| !fields.is_empty());
            (list, client) = ((**of).clone(), Some(api.clone()));
        }
        let mut identity = self.identity(&Scope::All, &codec, &options);
        identity.source = Some(NEXT.fetch_add(1, Ordering::Relaxed));
        identity.list = list.clone();
        let parts = options.shards.parts(&[list.namespace.clone()]);
        let stop = self.stop.child_token();
        let informer = Informer::new(codec, options, client, parts.len(), stop);
        let Split { sinks, stop, .. } = informer.split(parts, true);
        for sink in sinks {
            let (list, format) = (list.clone(), identity.format);
            let options = ReflectorOptions {
                list,
                format,
                ..Default::default()
            };
            match source.source.clone() {
                AnySource::Api { client, .. } => {
                    let source = ApiSource::new(client, informer.kind().clone());
                    self.reflect(source, sink, options, &stop);
                }
                AnySource::Functions(functions) => {
                    self.reflect(FunctionSource::new(functions), sink, options, &stop);
                }
            }
        }
        self.informers.lock().insert(identity, informer.downgrade());
        Lister::new(informer)
    }

    /// Returns a lister of a running informer of a kind, if there is one. Prefers the informer
    /// started by [`informer`](InformerFactory::informer). Otherwise returns any informer that
    /// caches the factory's namespaces completely and without a transform.
    pub fn started<K: Object>(&self) -> Option<Lister<K>> {
        let options = InformerOptions::default();
        let plain = self.identity(&self.scope, &Codec::of::<K>(), &options);
        let informers = self.informers.lock();
        let alike = |identity: &Identity| {
            *identity
                == Identity {
                    store_form: identity.store_form,
                    memory_budget: identity.memory_budget,
                    ..plain.clone()
                }
        };
        let others = informers.iter().filter(|(identity, _)| alike(identity));
        let handles = informers
            .get(&plain)
            .into_iter()
            .chain(others.map(|(_, handle)| handle));
        handles
            .filter_map(Informer::upgrade)
            .next()
            .map(Lister::new)
    }

    fn identity(&self, scope: &Scope, codec: &Codec, options: &InformerOptions) -> Identity {
        let text = |selector: Option<String>| selector.unwrap_or_default();
        let is_dynamic = codec.type_id == TypeId::of::<DynamicObject>();
        let mut list = ListOptions::new();
        list.label_selector = text(options.labels.as_ref().map(ToString::to_string));
        list.field_selector = text(options.fields.as_ref().map(ToString::to_string));
        Identity {
            type_id: codec.type_id,
            kind: is_dynamic.then(|| codec.kind.clone()),
            namespaces: scope.namespaces(codec.kind.namespaced),
            list,
            part: options.shards.selected(),
            format: ResponseFormat {
                metadata_only: options.metadata_only,
                protobuf: codec.message(options.metadata_only).is_some(),
            },
            store_form: options.form,
            transform: options.transform.as_ref().map(Transform::number),
            memory_budget: options.memory_budget,
            source: None,
            twin: 0,
        }
    }

    /// Returns the metrics of all informers, including those started later.
    ///
    /// # Examples
    /// ```
    /// use opkit_cache::InformerFactory;
    /// use prometheus_client::registry::Registry;
    ///
    /// fn register(factory: &InformerFactory, registry: &mut Registry) {
    ///     registry.register_collector(Box::new(factory.metrics()));
    /// }
    /// ```
    pub fn metrics(&self) -> CacheMetrics {
        CacheMetrics::new(self.informers.clone())
    }

    /// Waits until every running informer has completed its first list.
    ///
    /// # Errors
    /// If that takes longer than `timeout`. The error has the kind that is not synced and the last
    /// error of its requests.
    ///
    /// # Cancel safety
    /// Safe to drop at any time and to call again.
    pub async fn wait_for_sync(&self, timeout: Duration) -> Result<(), SyncError> {
        let informers: Vec<_> = {
            let informers = self.informers.lock();
            informers.values().filter_map(Informer::upgrade).collect()
        };
        let deadline = tokio::time::Instant::now() + timeout;
        for informer in informers {
            let synced = tokio::time::timeout_at(deadline, informer.wait_for_sync()).await;
            synced.map_err(|_| not_listed(&informer, timeout))?;
        }
        Ok(())
    }
}

/// New split of the kind of an informer; see [`InformerFactory::resplit`]. The informer keeps
/// running as long as this handle exists.
#[derive(Debug, Clone)]
pub struct Resplit {
    informer: Informer,
    generation: u64,
}

impl Resplit {
    /// Reports whether all watches of the new split have completed a list, so that the informer
    /// has the objects of the new part. If the kind was split again since, reports whether the
    /// watches of that later split have.
    pub fn is_listed(&self) -> bool {
        self.informer.has_listed(self.generation)
    }

    /// Waits until [`is_listed`](Self::is_listed) returns true.
    ///
    /// # Errors
    /// If that takes longer than `timeout`; same as
    /// [`wait_for_sync`](InformerFactory::wait_for_sync).
    ///
    /// # Cancel safety
    /// Safe to drop at any time and to call again.
    pub async fn wait(&self, timeout: Duration) -> Result<(), SyncError> {
        let listed = self.informer.wait_for_split(self.generation);
        let listed = tokio::time::timeout(timeout, listed).await;
        listed.map_err(|_| not_listed(&self.informer, timeout))
    }
}

/// Returns the error of an informer whose lists were not complete within `timeout`.
fn not_listed(informer: &Informer, timeout: Duration) -> SyncError {
    SyncError::Timeout {
        kind: Box::new(informer.kind().clone()),
        seconds: timeout.as_secs(),
        last_error: informer.last_error(),
    }
}

#[cfg(test)]
mod tests;
