//! Reflectors, stores and shared informers.
//!
//! - An [`InformerFactory`] keeps one [`Informer`] per type, scope, selectors and form: it streams
//!   or lists the kind, watches it, stores each object compactly and tells listeners what changed.
//!   It ends with its last user.
//! - A [`Lister`] reads it as a Rust type: `Arc`s, made when they are asked for and kept while in
//!   use. Keys, metadata and indexes ([`Index`]) are read in place: [`Stored`], [`Meta`].
//! - A [`Listener`] is told what changed as [`Delta`]s, one per object at most; also as a stream,
//!   or by a [`Handler`].
//! - A [`CachedClient`] reads through informers, writes to the API, and sees its own writes at
//!   once.
//! - [`InformerOptions`] says what is cached and how; [`Shards`] split a kind over watches and
//!   processes; [`CacheMetrics`] tells Prometheus.
//!
//! The engine is type-erased: only the [`Lister`] and one decode function know the Rust type. Tasks
//! run on the tracker that the factory is given, so whoever starts it joins them.

mod backoff;
mod cached_client;
mod delta;
mod error;
mod factory;
#[cfg(test)]
mod faults;
mod index;
mod informer;
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
mod tape;
mod watch_event;
mod writer;

pub use cached_client::CachedClient;
pub use delta::{Change, Delta, LastState, Step};
pub use error::{FetchError, ObjectError, ReadError, SyncError};
pub use factory::{InformerFactory, Scope};
pub use index::Index;
pub use informer::{Informer, Stats};
pub use listener::{Event, Handler, Listener};
pub use lister::{Lister, Selection};
pub use metrics::CacheMetrics;
pub use object::{AnyObject, CachedObject, DynamicObject, downcast};
pub use options::{InformerOptions, Transform};
pub use record::{StoreForm, Stored};
pub use shard::{ShardKey, ShardRange, ShardSelector, Shards};
pub use tape::diff::{FieldChange, ShownValues};
pub use tape::meta::{Meta, Owner};
