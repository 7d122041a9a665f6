//! Diagnosis of an operator in a cluster.
//!
//! [`Doctor::read`] reads the [`Facts`]: the objects that the operator's manifests name, as they
//! are in the cluster, and the objects around them. [`Doctor::look`] reads the objects of the
//! operator's kinds once more, so that loops are seen. [`Facts::examine`] is a pure function that
//! returns a [`Report`]: one [`Finding`] for each problem, with the command that solves it or shows
//! more. A healthy operator has no findings.
//!
//! The crate changes nothing in the cluster and prints nothing.

mod certificate;
mod checks;
mod facts;
mod finding;
mod looks;
mod read;
mod report;
mod value;

pub use facts::{Denied, Facts, OperatorManifests};
pub use finding::{Finding, Severity};
pub use looks::Look;
pub use read::{Doctor, DoctorError};
pub use report::Report;
