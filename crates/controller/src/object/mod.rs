//! The reconciled object: its key in the queue, its role as an owner, and extension traits for
//! objects.

pub(crate) mod owner;
mod quantity;
mod readiness;
mod request;

pub use self::quantity::QuantityExt;
pub use self::readiness::Readiness;
pub(crate) use self::readiness::is_custom;
pub use self::request::Request;
