//! Checks of custom resource definitions (CRDs), as pure functions of their documents.
//!
//! [`compare`] returns the changes between two sets of CRDs, each with a verdict by the rules that
//! OLM v1 applies before it upgrades a CRD. [`ObjectCheck`] validates stored objects against the
//! schema of a new CRD.
//!
//! CRDs are [`serde_json::Value`]s, as they are read from a file or from a cluster. This crate does
//! not check whether a CRD is valid, which is the task of an API server.

mod error;
mod upgrade;

pub use error::CrdError;
pub use upgrade::{
    Change, InvalidObject, ObjectCheck, StoredObjects, Upgrade, Verdict, common_version, compare,
    render,
};
