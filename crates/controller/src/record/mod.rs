//! Records of reconciles: the causes that are queued with an object, the trace of the reads and
//! writes of a reconcile, and the log of the last reconciles, which also detects loops.

mod cause;
pub(crate) mod causes;
mod hot_loop;
mod log;
mod outcome;
mod queues;
pub(crate) mod trace;

pub use self::cause::Cause;
pub use self::hot_loop::HotLoop;
pub(crate) use self::hot_loop::manager_of;
pub use self::log::{ReconcileLog, ReconcileRecord};
pub use self::outcome::Outcome;
pub use self::queues::QueuedRequest;
pub use self::trace::Write;
