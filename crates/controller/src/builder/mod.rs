//! The typed builder of a controller, and the type-erased controller that it builds.

mod controller;
mod source;
pub(crate) mod spec;
mod uncached;
mod watches;

pub use self::controller::Controller;
pub use self::source::{EverySource, Source};
pub use self::spec::{AnyController, WatchedKind};
