//! Control planes for tests.
//!
//! A test takes a [`ControlPlane`] and starts its operator on it. The environment selects one of
//! three control planes: an embedded API server in this process, which starts in milliseconds and
//! stops with the test; real etcd and Kubernetes, as processes that stop with this one; or an
//! existing cluster.

mod backend;
mod binaries;
mod check;
mod choice;
mod control_plane;
mod denials;
mod error;
mod fixtures;
mod golden;
mod report;
mod roles;
mod round_trip;
mod runner;
mod webhooks;

pub use backend::Capability;
pub use binaries::BinariesError;
pub use check::check;
pub use control_plane::{AuthServer, ControlPlane};
pub use denials::DeniedRequest;
pub use error::TestError;
pub use fixtures::fixtures;
pub use golden::golden;
#[doc(hidden)]
#[doc(hidden)]
pub use runner::run;
