//! Deduplicating work queue with priorities, delays, rate limits and metrics, with the semantics of
//! client-go and controller-runtime.
//!
//! [`Engine`] is the state machine: a plain, synchronous struct that gets the time as an argument.
//! [`Queue`] wraps an `Engine` and lets workers wait for keys. A waiting key is in the queue once,
//! and a key in work is never handed to a second worker. When several adds of a key are merged, the
//! reasons for the adds are kept ([`Merge`], [`Reasons`]).
//!
//! This crate is independent of Kubernetes: keys are any hashable value.

mod engine;
mod limiter;
mod metrics;
mod options;
mod queue;
mod reasons;
mod snapshot;

pub use engine::{Engine, Ticket, Work};
pub use limiter::{
    ItemExponential, ItemFastSlow, Jittered, MaxOf, RateLimiter, TokenBucket, WithMaxWait,
    default_controller_rate_limiter,
};
pub use metrics::{MetricsProvider, QueueMetrics};
pub use options::{AddOptions, QueueOptions, group_of};
pub use queue::{Item, Queue};
pub use reasons::{Merge, Reasons};
pub use snapshot::{KeyState, Snapshot, WaitState};
