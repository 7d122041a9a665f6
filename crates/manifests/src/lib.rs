//! Manifests that an operator needs in a cluster: CRDs and RBAC.
//!
//! A model goes in, documents come out: [`Rbac`] builds roles and their bindings from
//! [`PolicyRule`]s, [`yaml`](fn@yaml) prints documents, and `kinds` builds the CRD of a declared
//! kind. The crate does no I/O and reads nothing from a cluster.
//!
//! Names follow kubebuilder, for instance `robot-operator-manager-role`.

#[doc(hidden)]
pub mod kinds;
mod rbac;
mod rule;
mod yaml;

pub use rbac::Rbac;
pub use rule::{PolicyRule, merge};
pub use yaml::{YamlError, yaml};
