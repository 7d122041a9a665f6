//! Leader election on a Lease: at most one process of several does the work that is for one.
//!
//! [`LeaderElector`] documents the guarantees. `engine` is the state machine without a clock or a
//! network, `lock` the Lease on the wire, `elector` the async shell around both; [`LeaderWork`]
//! counts the work that the elector waits for before it releases the lease. `simulate` is the
//! model test. This crate does not know controllers: callers follow [`Leadership`] and write
//! through the elector's fence.

mod elector;
mod engine;
mod error;
mod lock;
mod metrics;
mod options;
#[cfg(test)]
mod simulate;
mod watchdog;
mod work;

pub use elector::{LeaderElector, Leadership};
pub use error::LeaderElectionError;
pub use metrics::LeaderElectionMetrics;
pub use options::LeaderElectionOptions;
pub use watchdog::LeaderWatchdog;
pub use work::{LeaderWork, WorkGuard};
