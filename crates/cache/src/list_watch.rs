//! Lists and watches of one kind: those of the API, or two functions of a program.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use opkit_client::{Kind, ListOptions, Object, RestClient};
use serde::Serialize;
use serde_json::json;

/// Objects of a source, and the version of the source at which they were listed.
#[derive(Debug, Clone)]
pub struct ObjectList<K> {
    /// All objects.
    pub objects: Vec<K>,
    /// Version from which a watch continues after this list.
    pub version: String,
}

/// Event of a watch of a source that is not the API.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SourceEvent<K> {
    /// An object was created.
    Added(K),
    /// An object has changed.
    Modified(K),
    /// An object was deleted; this is its last state, or at least its name.
    Deleted(K),
    /// All events up to this version were sent.
    Bookmark(String),
}

/// Error of a list or watch function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListWatchError {
    /// The watch cannot continue from the version, because the source has forgotten the changes
    /// since then. The objects are listed again.
    #[error("the version is too old for a watch")]
    Expired,
    /// The call failed; it is repeated after a delay.
    #[error("cannot read the source")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An object of the source cannot be written as JSON.
    #[error("cannot write an object of the source as JSON")]
    Json(#[source] serde_json::Error),
}

impl ListWatchError {
    /// Creates the error of a call that is repeated after a delay.
    pub fn failed(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(cause.into())
    }

    /// Reports whether the objects have to be listed again.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Expired)
    }
}

type List = dyn Fn() -> BoxFuture<'static, Result<Bytes, ListWatchError>> + Send + Sync;
type Events = BoxStream<'static, Result<Bytes, ListWatchError>>;
type Watch = dyn Fn(String) -> BoxFuture<'static, Result<Events, ListWatchError>> + Send + Sync;

/// The two functions of a source, which return what an API server would send.
#[derive(Clone)]
pub(crate) struct Functions {
    pub(crate) list: Arc<List>,
    pub(crate) watch: Arc<Watch>,
}

/// Source of the objects of one kind for a [`Reflector`](crate::Reflector) or an informer: the API,
/// or two functions that list and watch any other system, such as a directory or the API of a
/// vendor. client-go's `ListWatch`.
///
/// The objects of such a system are of a kind as well: a Rust type with metadata, which no API
/// server needs to serve. Each object has a name. If its `resourceVersion` is set, a watch that has
/// ended is started again from the version of the last event; otherwise, it starts again from that
/// of the list or of the last [bookmark](SourceEvent::Bookmark). Versions are compared only if they
/// are numbers: a lower one than before means that the source was restored, and all objects are
/// listed again.
///
/// A watch that ends is started again, and one that fails after a delay, which grows from 1 s to
/// 60 s. A watch that cannot continue from the version returns [`ListWatchError::Expired`].
///
/// # Examples
/// The settings of a program as a kind that no server has:
/// ```
/// use futures::StreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_cache::{Indexer, ListWatch, ListWatchError, ObjectList, Reflector, SourceEvent};
/// use tokio_util::sync::CancellationToken;
///
/// fn setting(name: &str, version: &str) -> ConfigMap {
///     let mut map = ConfigMap::default();
///     map.metadata.name = Some(name.to_owned());
///     map.metadata.resource_version = Some(version.to_owned());
///     map
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let list = || async {
///     Ok(ObjectList { objects: vec![setting("colour", "1")], version: "1".to_owned() })
/// };
/// // Sends the changes since the version; here there is one.
/// let watch = |version: String| async move {
///     assert_eq!(version, "1");
///     let changes = [Ok::<_, ListWatchError>(SourceEvent::Added(setting("size", "2")))];
///     Ok(futures::stream::iter(changes).chain(futures::stream::pending()))
/// };
/// let settings = Indexer::of_objects();
/// let reflector = Reflector::new(ListWatch::new(list, watch), settings.clone());
/// let stop = CancellationToken::new();
/// let fill = async {
///     while settings.len() < 2 {
///         tokio::task::yield_now().await;
///     }
///     stop.cancel();
/// };
/// tokio::join!(reflector.run(stop.clone()), fill);
/// assert!(settings.get(&"size".into()).is_some());
/// # }
/// ```
pub struct ListWatch<K> {
    pub(crate) source: AnySource,
    kind: PhantomData<fn() -> K>,
}

/// Source without its Rust type.
#[derive(Clone)]
pub(crate) enum AnySource {
    Api {
        client: RestClient,
        list: Box<ListOptions>,
    },
    Functions(Functions),
}

impl<K> Clone for ListWatch<K> {
    fn clone(&self) -> Self {
        Self {
            source: self.source.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            AnySource::Api { .. } => "the API",
            AnySource::Functions(_) => "functions",
        };
        f.debug_struct("ListWatch")
            .field("source", &source)
            .finish()
    }
}

impl<K: Object> ListWatch<K> {
    /// Creates a source from a function that lists all objects, and a function that watches for
    /// changes since a version. For types of the API's own kinds, see [`of_api`](Self::of_api).
    pub fn new<List, Listing, Watch, Watching, Events>(list: List, watch: Watch) -> Self
    where
        List: Fn() -> Listing + Send + Sync + 'static,
        Listing: Future<Output = Result<ObjectList<K>, ListWatchError>> + Send + 'static,
        Watch: Fn(String) -> Watching + Send + Sync + 'static,
        Watching: Future<Output = Result<Events, ListWatchError>> + Send + 'static,
        Events: Stream<Item = Result<SourceEvent<K>, ListWatchError>> + Send + 'static,
    {
        let functions = Functions {
            list: Arc::new(move || {
                let listing = list();
                async move { page(&listing.await?) }.boxed()
            }),
            watch: Arc::new(move |version| {
                let watching = watch(version);
                async move {
                    let events = watching.await?;
                    Ok(events.map(|event| line(&event?)).boxed())
                }
                .boxed()
            }),
        };
        Self {
            source: AnySource::Functions(functions),
            kind: PhantomData,
        }
    }

    /// Creates the source of a kind of the API. `list` has the namespace and the selectors.
    pub fn of_api(client: RestClient, list: ListOptions) -> Self {
        Self {
            source: AnySource::Api {
                client,
                list: Box::new(list),
            },
            kind: PhantomData,
        }
    }

    /// Returns the kind of the objects.
    pub fn kind(&self) -> Kind {
        Kind::of::<K>()
    }
}

/// Returns the list as an API server would send it.
fn page<K: Serialize>(list: &ObjectList<K>) -> Result<Bytes, ListWatchError> {
    let version = json!({"resourceVersion": list.version});
    let mut body = br#"{"metadata":"#.to_vec();
    write(&mut body, &version)?;
    body.extend_from_slice(br#","items":"#);
    write(&mut body, &list.objects)?;
    body.push(b'}');
    Ok(body.into())
}

/// Returns the event as an API server would send it.
fn line<K: Serialize>(event: &SourceEvent<K>) -> Result<Bytes, ListWatchError> {
    let (kind, object) = match event {
        SourceEvent::Added(object) => ("ADDED", object),
        SourceEvent::Modified(object) => ("MODIFIED", object),
        SourceEvent::Deleted(object) => ("DELETED", object),
        SourceEvent::Bookmark(version) => {
            let object = json!({"metadata": {"resourceVersion": version}});
            let event = json!({"type": "BOOKMARK", "object": object});
            return Ok(event.to_string().into());
        }
    };
    let mut line = format!(r#"{{"type":"{kind}","object":"#).into_bytes();
    write(&mut line, object)?;
    line.push(b'}');
    Ok(line.into())
}

fn write(into: &mut Vec<u8>, value: &impl Serialize) -> Result<(), ListWatchError> {
    serde_json::to_writer(into, value).map_err(ListWatchError::Json)
}
