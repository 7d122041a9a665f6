//! Reflectors, stores and shared informers.
//!
//! An [`InformerFactory`] keeps one [`Informer`] per kind: it lists and watches the kind, decodes
//! each object once from the wire bytes, stores it and tells listeners what changed. Reading is
//! through a typed [`Lister`], which hands out `Arc`s and never copies an object.
//!
//! The engine is type-erased: only the [`Lister`] and one decode function know the Rust type. Tasks
//! run on the tracker that the factory is given, so whoever starts it joins them.

mod backoff;
mod error;
mod factory;
mod informer;
mod listener;
mod lister;
mod object;
mod random;
mod reflector;
#[cfg(test)]
mod simulate;
mod sink;
mod store;
mod watch_event;

pub use error::{DecodeError, SyncError};
pub use factory::{InformerFactory, Scope};
pub use informer::Informer;
pub use listener::{Event, Listener};
pub use lister::{Lister, Selection};
pub use object::{AnyObject, CachedObject, downcast};
pub use store::Delta;
