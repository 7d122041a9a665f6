//! Control planes for tests.
//!
//! A test takes a [`ControlPlane`] and starts its operator on it. Which one it is, the environment
//! says: an embedded API server of the test's own, in this process, which starts in milliseconds
//! and of which nothing outlives the test; real etcd and Kubernetes, as processes that end with
//! this one; or a cluster.

mod backend;
mod binaries;
mod choice;
mod control_plane;
mod error;
mod golden;
mod report;
mod runner;

pub use backend::Capability;
pub use binaries::BinariesError;
pub use control_plane::ControlPlane;
pub use error::TestError;
pub use golden::golden;
#[doc(hidden)]
pub use runner::run;
