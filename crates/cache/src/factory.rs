//! The factory: one informer per kind, started on first use, on tasks of its owner.

use std::any::TypeId;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kube::core::PartialObjectMeta;
use opkit_apimachinery::random::Random;
use opkit_client::{CollectionOptions, Kind, Object, RestClient};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::informer::User;
use crate::object::Codec;
use crate::reflector::{Reflector, ReflectorOptions};
use crate::shard::Part;
use crate::{
    CacheMetrics, DynamicObject, Informer, InformerOptions, Lister, Shards, StoreForm, SyncError,
    Transform,
};

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
    /// The namespaces to list one by one, each once and in order, or one `None` for all at once.
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
    informers: Informers,
}

/// The informers of a factory that somebody uses.
pub(crate) type Informers = Arc<Mutex<HashMap<Identity, Weak<User>>>>;

/// What makes two requests for an informer the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    type_id: TypeId,
    /// Of a kind that has no Rust type.
    kind: Option<Kind>,
    namespaces: Vec<Option<String>>,
    collection: CollectionOptions,
    form: StoreForm,
    /// Which transform; two are never the same, whatever they do.
    transform: Option<u64>,
    memory_budget: Option<usize>,
    /// Not 0 for an informer that became like another one; see [`InformerFactory::resplit`].
    twin: u32,
}

impl Identity {
    /// What it leaves out, in words.
    pub(crate) fn selector(&self) -> String {
        let collection = &self.collection;
        let namespaces = self.namespaces.iter().flatten();
        let namespaces = namespaces.map(|name| format!("namespace={name}"));
        let selectors = [
            &collection.label_selector,
            &collection.field_selector,
            &collection.shard_selector,
        ];
        let selectors = selectors.into_iter().filter(|text| !text.is_empty());
        let mut parts: Vec<_> = namespaces.chain(selectors.cloned()).collect();
        if collection.metadata_only {
            parts.push("metadata".to_owned());
        }
        if self.form != StoreForm::default() {
            parts.push(format!("{:?}", self.form).to_lowercase());
        }
        parts.extend(self.transform.map(|number| format!("transform={number}")));
        parts.extend(self.memory_budget.map(|bytes| format!("budget={bytes}")));
        if self.twin > 0 {
            parts.push(format!("twin={}", self.twin));
        }
        parts.join(";")
    }
}

impl InformerFactory {
    /// A factory whose informers run on `tasks` until `stop`.
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

    /// An informer of a kind that is known only at run time; its objects are
    /// [`DynamicObject`](crate::DynamicObject)s.
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

    /// An informer of another scope than the factory's.
    pub fn informer_in<K: Object>(&self, scope: &Scope, options: InformerOptions) -> Lister<K> {
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
        informers.retain(|_, user| user.strong_count() > 0);
        let shards = options.shards.clone();
        let parts = shards.parts(&identity.namespaces);
        let informer = Informer::new(
            codec,
            options,
            Some(self.client.clone()),
            parts.len(),
            self.stop.child_token(),
        );
        self.start(&informer, parts, &identity.collection);
        informers.insert(identity, informer.downgrade());
        informer
    }

    /// Reads what an informer of this factory caches by other watches, or another part of it. What
    /// is cached stays readable; listeners are told what the new lists find changed, and nothing
    /// twice. Objects that are not in the new part are gone for this informer. Does nothing for an
    /// informer of another factory.
    ///
    /// # Examples
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use opkit_cache::{InformerFactory, InformerOptions, ShardKey, Shards};
    ///
    /// fn share(factory: &InformerFactory) {
    ///     let options = InformerOptions::default().shards(Shards::part(ShardKey::Uid, 0, 2));
    ///     let pods = factory.informer_with::<Pod>(options);
    ///     // A third process has come.
    ///     factory.resplit(&pods, Shards::part(ShardKey::Uid, 0, 3));
    /// }
    /// ```
    pub fn resplit<K: Object>(&self, lister: &Lister<K>, shards: Shards) {
        let user = lister.informer().downgrade();
        let mut informers = self.informers.lock();
        let known = informers.iter().find(|(_, known)| known.ptr_eq(&user));
        let Some(mut identity) = known.map(|(identity, _)| identity.clone()) else {
            return;
        };
        informers.remove(&identity);
        identity.collection.shard_selector = selector(&shards);
        identity.twin = 0;
        // Who reads the same already stays the one that is shared.
        while (informers.get(&identity)).is_some_and(|other| other.strong_count() > 0) {
            identity.twin = identity.twin.saturating_add(1);
        }
        let parts = shards.parts(&identity.namespaces);
        self.start(lister.informer(), parts, &identity.collection);
        informers.insert(identity, user);
    }

    /// Starts the reflectors of an informer.
    fn start(&self, informer: &Informer, parts: Vec<Part>, collection: &CollectionOptions) {
        let (sinks, stop) = informer.split(parts.clone());
        for (part, sink) in parts.into_iter().zip(sinks) {
            let shard = part.shard.as_ref().map(ToString::to_string);
            let options = ReflectorOptions {
                namespace: part.namespace,
                collection: CollectionOptions {
                    shard_selector: shard.unwrap_or_default(),
                    ..collection.clone()
                },
                ..Default::default()
            };
            let random = Random::new(Random::seed());
            let reflector = Reflector::with_sink(self.client.clone(), sink, options, random);
            let stop = stop.clone();
            self.tasks.spawn(async move {
                stop.run_until_cancelled(reflector.run()).await;
            });
        }
    }

    /// A lister of a kind whose informer was started and is still in use: that of
    /// [`informer`](InformerFactory::informer), or else any that has the whole kind, untransformed.
    pub fn started<K: Object>(&self) -> Option<Lister<K>> {
        let options = InformerOptions::default();
        let plain = self.identity(&self.scope, &Codec::of::<K>(), &options);
        let informers = self.informers.lock();
        let alike = |identity: &Identity| {
            *identity
                == Identity {
                    form: identity.form,
                    memory_budget: identity.memory_budget,
                    ..plain.clone()
                }
        };
        let others = informers.iter().filter(|(identity, _)| alike(identity));
        let users = informers
            .get(&plain)
            .into_iter()
            .chain(others.map(|(_, user)| user));
        users.filter_map(Informer::upgrade).next().map(Lister::new)
    }

    fn identity(&self, scope: &Scope, codec: &Codec, options: &InformerOptions) -> Identity {
        let text = |selector: Option<String>| selector.unwrap_or_default();
        let is_dynamic = codec.type_id == TypeId::of::<DynamicObject>();
        Identity {
            type_id: codec.type_id,
            kind: is_dynamic.then(|| codec.kind.clone()),
            namespaces: scope.namespaces(codec.kind.namespaced),
            collection: CollectionOptions {
                label_selector: text(options.labels.as_ref().map(ToString::to_string)),
                field_selector: text(options.fields.as_ref().map(ToString::to_string)),
                shard_selector: selector(&options.shards),
                metadata_only: options.metadata_only,
                protobuf: codec.message(options.metadata_only).is_some(),
            },
            form: options.form,
            transform: options.transform.as_ref().map(Transform::number),
            memory_budget: options.memory_budget,
            twin: 0,
        }
    }

    /// The metrics of all informers, those started later included.
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

/// The part that all watches of an informer read together.
fn selector(shards: &Shards) -> String {
    let range = shards.range.as_ref();
    range.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests;
