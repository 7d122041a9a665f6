//! Reflector that fills a store of the user, without an informer.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, ListOptions, Object, ObjectKey, ResponseFormat};
use opkit_random::Random;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::ListWatch;
use crate::list_watch::AnySource;
use crate::reflector::{
    ApiSource, Counters, FunctionSource, ReflectorLoop, ReflectorOptions, Source,
};
use crate::sink::{HeadError, Raw, Sink};

/// Store that a [`Reflector`] fills; implemented by the user, by [`Indexer`](crate::Indexer) and by
/// [`DeltaQueue`](crate::DeltaQueue). All methods are called in order from one task, and should not
/// block.
pub trait ReflectorStore<K>: Send + 'static {
    /// Adds an object that the store does not have.
    fn add(&mut self, object: Arc<K>);

    /// Replaces an object that the store has.
    fn update(&mut self, object: Arc<K>);

    /// Removes an object. `last` is the state that the source reported with the deletion; `None` if
    /// that cannot be decoded.
    fn delete(&mut self, key: &ObjectKey, last: Option<Arc<K>>);

    /// Replaces all objects by those of a list, at the start and after a gap in the watch.
    fn replace(&mut self, objects: Vec<Arc<K>>, version: &str);

    /// Called for an object that does not match the Rust type: it is left out of lists, and changes
    /// of it are not delivered. Does nothing by default; the reflector logs a warning.
    fn unreadable(&mut self, key: &ObjectKey, error: &serde_json::Error) {
        let _ = (key, error);
    }
}

/// Reflector that keeps a store of the user in step with a source. client-go's `Reflector`.
///
/// Lists and watches are those of an informer: a watch that ends continues from its last version,
/// an expired one leads to a new list, and failures are repeated after a delay. The store gets
/// whole objects of the Rust type, and decides what to keep of them. To cache objects compactly, to
/// share them and to listen for changes, use an [`InformerFactory`](crate::InformerFactory).
///
/// # Examples
/// A store that keeps only the number of pods of each node:
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
/// use k8s_openapi::api::core::v1::Pod;
/// use opkit_cache::{ListWatch, Reflector, ReflectorStore};
/// use opkit_client::{ListOptions, ObjectKey, RestClient};
/// use tokio_util::sync::CancellationToken;
///
/// #[derive(Default)]
/// struct Nodes {
///     nodes: HashMap<ObjectKey, String>,
///     pods: Arc<Mutex<HashMap<String, usize>>>,
/// }
///
/// impl Nodes {
///     fn count(&self) {
///         let mut pods = HashMap::new();
///         for node in self.nodes.values() {
///             *pods.entry(node.clone()).or_default() += 1;
///         }
///         *self.pods.lock().unwrap() = pods;
///     }
/// }
///
/// impl ReflectorStore<Pod> for Nodes {
///     fn add(&mut self, pod: Arc<Pod>) {
///         let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
///         let key = ObjectKey::of(&pod.metadata);
///         self.nodes.insert(key, node.unwrap_or_default());
///         self.count();
///     }
///     fn update(&mut self, pod: Arc<Pod>) {
///         self.add(pod);
///     }
///     fn delete(&mut self, key: &ObjectKey, _: Option<Arc<Pod>>) {
///         self.nodes.remove(key);
///         self.count();
///     }
///     fn replace(&mut self, pods: Vec<Arc<Pod>>, _version: &str) {
///         self.nodes.clear();
///         pods.into_iter().for_each(|pod| self.add(pod));
///         self.count();
///     }
/// }
///
/// async fn count_pods(client: RestClient, store: Nodes, stop: CancellationToken) {
///     let pods = ListWatch::of_api(client, ListOptions::new());
///     Reflector::new(pods, store).run(stop).await;
/// }
/// ```
pub struct Reflector<K, S> {
    source: ListWatch<K>,
    sink: StoreSink<K, S>,
}

impl<K, S> fmt::Debug for Reflector<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("kind", &self.sink.kind)
            .finish_non_exhaustive()
    }
}

impl<K: Object, S: ReflectorStore<K>> Reflector<K, S> {
    /// Creates a reflector. Nothing is read before [`run`](Self::run).
    pub fn new(source: ListWatch<K>, store: S) -> Self {
        let sink = StoreSink {
            kind: source.kind(),
            store,
            known: HashSet::new(),
            listed: HashMap::new(),
            synced: watch::Sender::new(false),
            last_error: watch::Sender::new(None),
        };
        Self { source, sink }
    }

    /// Returns a watch that becomes `true` after the first list.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.sink.synced.subscribe()
    }

    /// Returns a watch of the error of the last list or watch; `None` after a success.
    pub fn last_error(&self) -> watch::Receiver<Option<String>> {
        self.sink.last_error.subscribe()
    }

    /// Fills the store until `stop` is cancelled.
    ///
    /// # Cancel safety
    /// May be dropped at any time: a call of the store is never interrupted.
    pub async fn run(self, stop: CancellationToken) {
        match self.source.source {
            AnySource::Api { client, list } => {
                let source = ApiSource::new(client, self.sink.kind.clone());
                fill(source, self.sink, *list, stop).await;
            }
            AnySource::Functions(functions) => {
                let source = FunctionSource::new(functions);
                fill(source, self.sink, ListOptions::new(), stop).await;
            }
        }
    }
}

async fn fill(source: impl Source, sink: impl Sink, list: ListOptions, stop: CancellationToken) {
    let options = ReflectorOptions {
        list,
        // The sink decodes JSON: a tape, as an informer stores, would be decoded at once anyway.
        format: ResponseFormat::default(),
        ..Default::default()
    };
    let random = Random::new(Random::seed());
    let reflector = ReflectorLoop::with_sink(source, sink, options, random);
    stop.run_until_cancelled(reflector.run()).await;
}

/// Sink that decodes objects and passes them to the user's store.
struct StoreSink<K, S> {
    kind: Kind,
    store: S,
    /// Keys of the objects that the store has.
    known: HashSet<ObjectKey>,
    /// Objects of the list in progress.
    listed: HashMap<ObjectKey, Arc<K>>,
    synced: watch::Sender<bool>,
    last_error: watch::Sender<Option<String>>,
}

/// Name and version of an object.
#[derive(Deserialize)]
struct Head {
    metadata: ObjectMeta,
}

/// Object that a source has sent.
struct Received<K> {
    key: ObjectKey,
    version: Option<String>,
    /// The object; an error if it does not match the Rust type.
    object: Result<Arc<K>, serde_json::Error>,
}

impl<K: Object> Received<K> {
    fn read(raw: Raw<'_>) -> Result<Self, HeadError> {
        let json = match raw {
            Raw::Json(json) => json,
            Raw::Protobuf(_) => {
                debug_assert!(false, "protobuf is not requested");
                &[]
            }
        };
        let (object, meta) = match serde_json::from_slice::<K>(json) {
            Ok(object) => {
                let meta = object.meta().clone();
                (Ok(Arc::new(object)), meta)
            }
            Err(error) => {
                let head: Head = serde_json::from_slice(json).map_err(HeadError::Json)?;
                (Err(error), head.metadata)
            }
        };
        if meta.name.as_ref().is_none_or(String::is_empty) {
            return Err(HeadError::Json(serde::de::Error::missing_field("name")));
        }
        Ok(Self {
            key: ObjectKey::of(&meta),
            version: meta.resource_version,
            object,
        })
    }
}

impl<K: Object, S: ReflectorStore<K>> StoreSink<K, S> {
    fn unreadable(&mut self, key: &ObjectKey, error: &serde_json::Error) {
        warn!(kind = %self.kind, %key, error = %error, "an object does not match its Rust type");
        self.store.unreadable(key, error);
    }
}

impl<K: Object, S: ReflectorStore<K>> Sink for StoreSink<K, S> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn begin_list(&mut self) -> bool {
        self.listed.clear();
        false
    }

    fn listed(&mut self, object: Raw<'_>) -> Result<(), HeadError> {
        let received = Received::read(object)?;
        match received.object {
            Ok(object) => {
                self.listed.insert(received.key, object);
            }
            Err(error) => self.unreadable(&received.key, &error),
        }
        Ok(())
    }

    fn end_list(&mut self, resource_version: &str) {
        let listed = std::mem::take(&mut self.listed);
        self.known = listed.keys().cloned().collect();
        self.store
            .replace(listed.into_values().collect(), resource_version);
        self.synced.send_replace(true);
    }

    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError> {
        let Received {
            key,
            version,
            object,
        } = Received::read(object)?;
        match object {
            Ok(object) if self.known.insert(key.clone()) => self.store.add(object),
            Ok(object) => self.store.update(object),
            Err(error) => self.unreadable(&key, &error),
        }
        Ok(version)
    }

    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError> {
        let received = Received::<K>::read(object)?;
        // During a list, the object is not part of it.
        self.listed.remove(&received.key);
        if self.known.remove(&received.key) {
            self.store.delete(&received.key, received.object.ok());
        }
        Ok(received.version)
    }

    fn bookmark(&mut self, _: &str) {}

    fn set_last_error(&mut self, error: Option<String>) {
        self.last_error.send_if_modified(|last| {
            let is_new = *last != error;
            *last = error;
            is_new
        });
    }

    fn set_counters(&mut self, _: Duration, _: &Counters) {}
}

#[cfg(test)]
mod tests;
