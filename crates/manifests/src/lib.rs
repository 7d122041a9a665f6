//! What an operator needs in a cluster, as manifests: CRDs and RBAC.
//!
//! A model goes in, documents come out: [`Rbac`] makes roles and their bindings of [`PolicyRule`]s,
//! [`yaml`] prints documents, and `kinds` builds the CRD of a declared kind. No I/O here, and
//! nothing is read from a cluster.
//!
//! Names are kubebuilder's: what it calls `robot-operator-manager-role` is called so here.

#[doc(hidden)]
pub mod kinds;
mod rbac;
mod rule;
mod yaml;

pub use rbac::Rbac;
pub use rule::{PolicyRule, merge};
pub use yaml::{YamlError, yaml};
