//! A deduplicating work queue with delays and per-key backoff, as client-go has it.
//!
//! [`Engine`] is the state machine: a plain struct, synchronous, told the time. [`Queue`] is the
//! thin shell around it that workers wait on. A key that waits is in the queue once, a key in work
//! is never handed to a second worker, and what made a key need work survives coalescing
//! ([`Merge`], [`Reasons`]).
//!
//! This room knows nothing of Kubernetes: keys are any hashable value.

mod backoff;
mod engine;
mod queue;
mod reasons;

pub use backoff::Backoff;
pub use engine::Engine;
pub use queue::{AddOptions, Item, Queue};
pub use reasons::{Merge, Reasons};
