//! Reads of the kinds that a controller declares, and the rules for reads across namespaces.

pub(crate) mod cross_namespace;
mod map_context;

pub use self::cross_namespace::Reference;
pub(crate) use self::map_context::Declared;
pub use self::map_context::MapContext;
