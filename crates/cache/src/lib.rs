//! Reflectors, stores and shared informers.
//!
//! - An [`InformerFactory`] starts and shares [`Informer`]s: one for each combination of type,
//!   namespaces, selectors and options. An informer lists and watches a kind, stores each object
//!   compactly and notifies listeners of changes. The informer stops when its last user is dropped.
//! - A [`Lister`] reads an informer's objects as a Rust type. Objects are decoded on first use and
//!   shared as `Arc`s while in use. Keys, metadata ([`Meta`]) and indexes ([`Index`]) of stored
//!   objects ([`Stored`]) are read without decoding.
//! - A [`Listener`] receives changes as [`Delta`]s, at most one pending per object. A listener can
//!   also be used as a stream, or call a [`Handler`].
//! - A [`CachedClient`] reads from informers and writes to the API. Reads through the client show
//!   its writes immediately.
//! - For a loop of one's own: a [`ListWatch`] of any system, a [`Reflector`] that fills a
//!   [`ReflectorStore`], an [`Indexer`] that the program fills, a [`DeltaQueue`] of changes.
//! - [`InformerOptions`] configures what is cached and in which form; [`Shards`] split a kind over
//!   several watches and processes; [`CacheMetrics`] exports Prometheus metrics.
//!
//! The engine is type-erased: only the [`Lister`] and one decode function know the Rust type. Tasks
//! run on the `TaskTracker` passed to the factory, so that the owner of the tracker can join them.

mod backoff;
mod cached_client;
mod delta;
mod delta_queue;
mod error;
mod factory;
#[cfg(test)]
mod faults;
mod index;
mod indexer;
mod informer;
mod list_watch;
mod listener;
mod lister;
mod metrics;
mod object;
mod options;
mod pool;
mod record;
mod reflector;
mod shard;
#[cfg(test)]
mod simulate;
mod sink;

mod store;
mod store_reflector;
mod tape;
mod watch_event;
mod writer;

pub use cached_client::CachedClient;
pub use delta::{Change, Delta, LastState, Step};
pub use delta_queue::{DeltaQueue, ObjectDelta, PoppedDeltas};
pub use error::{CacheReadError, FetchError, ObjectError, SyncError};
pub use factory::{InformerFactory, Resplit, Scope};
pub use index::Index;
pub use indexer::{Indexer, IndexerError};
pub use informer::{Informer, Stats};
pub use list_watch::{ListWatch, ListWatchError, ObjectList, SourceEvent};
pub use listener::{Event, Handler, Listener};
pub use lister::{Lister, Selection};
pub use metrics::CacheMetrics;
pub use object::{AnyObject, CachedObject, DynamicObject, downcast};
pub use options::{InformerOptions, Transform};
pub use record::{StoreForm, Stored};
pub use shard::{ShardKey, ShardRange, ShardSelector, Shards};

pub use store_reflector::{Reflector, ReflectorStore};
pub use tape::diff::{FieldChange, ShownValues};
pub use tape::meta::{Meta, Owner};
