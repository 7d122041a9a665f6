//! Leader election on a Lease: at most one of several processes is the leader.
//!
//! [`LeaderElector`] documents the guarantees. Callers follow [`Leadership`], hold a [`WorkGuard`]
//! of [`LeaderWork`] while leader-only work runs, and write through the elector's fence. The crate
//! does not depend on controllers.
//!
//! The module `engine` is the state machine, without a clock or a network. `lock` reads and writes
//! the Lease. `elector` is the async code around both. `simulate` tests elections in a
//! simulation.
//!
//! # Examples
//! ```
//! use opkit_client::RestClient;
//! use opkit_leaderelection::{LeaderElectionError, LeaderElectionOptions, LeaderElector};
//! use tokio_util::sync::CancellationToken;
//!
//! async fn log_leadership(
//!     client: RestClient,
//!     stop: CancellationToken,
//! ) -> Result<(), LeaderElectionError> {
//!     let options = LeaderElectionOptions::new("shop-operator.opkit.dev");
//!     let elector = LeaderElector::try_new(client, options)?;
//!     let mut leadership = elector.leadership();
//!     let log = async {
//!         while leadership.changed().await.is_ok() {
//!             println!("{:?}", *leadership.borrow_and_update());
//!         }
//!     };
//!     tokio::join!(elector.run(stop), log);
//!     Ok(())
//! }
//! ```

mod elector;
mod engine;
mod error;
mod lock;
mod metrics;
mod options;
mod sharding;
#[cfg(test)]
mod simulate;
mod watchdog;
mod work;

pub use elector::{LeaderElector, Leadership};
pub use error::LeaderElectionError;
pub use metrics::LeaderElectionMetrics;
pub use options::LeaderElectionOptions;
pub use sharding::{OwnedSlots, ShardMember, SlotAssignment, SlotPermit};
pub use watchdog::LeaderWatchdog;
pub use work::{LeaderWork, WorkGuard};
