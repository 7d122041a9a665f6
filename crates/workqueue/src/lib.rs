//! A deduplicating work queue with priorities, delays, rate limits and metrics, as client-go and
//! controller-runtime have it.
//!
//! [`Engine`] is the state machine: a plain struct, synchronous, told the time. [`Queue`] is the
//! thin shell around it that workers wait on. A key that waits is in the queue once, a key in work
//! is never handed to a second worker, and what made a key need work survives coalescing
//! ([`Merge`], [`Reasons`]).
//!
//! This room knows nothing of Kubernetes: keys are any hashable value.

mod engine;
mod limiter;
mod metrics;
mod options;
mod queue;
mod random;
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
