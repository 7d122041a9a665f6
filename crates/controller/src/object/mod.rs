//! The reconciled object: its key in the queue, its role as an owner, and readings of objects.

pub(crate) mod owner;
mod quantity;
mod readiness;
mod request;

pub use self::quantity::QuantityExt;
pub use self::readiness::Readiness;
pub use self::request::Request;
