//! Reads of the kinds that a controller declares, and the rules for reads across namespaces.

pub(crate) mod cross_namespace;
mod identity;
mod map_context;
pub(crate) mod parts;
mod uncached;
mod watched;

pub use self::cross_namespace::Reference;
pub(crate) use self::identity::ControllerIdentity;
pub(crate) use self::map_context::Declared;
pub use self::map_context::MapContext;
pub use self::uncached::UndeclaredReads;
pub(crate) use self::uncached::{Divided, Route, UncachedKind};
pub(crate) use self::watched::Watched;
