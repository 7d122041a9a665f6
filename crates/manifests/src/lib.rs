//! Manifests that an operator needs in a cluster: CRDs and RBAC.
//!
//! [`Rbac`] builds roles and role bindings from [`PolicyRule`]s, [`yaml`](fn@yaml) formats
//! manifests as YAML, and the module `kinds` builds the CRD of a kind that is declared with
//! `#[opkit::kind(...)]`. The crate does no I/O and reads nothing from a cluster.
//!
//! The names of the objects follow kubebuilder, for instance `robot-operator-manager-role`.

#[doc(hidden)]
pub mod kinds;
mod rbac;
mod rule;
mod yaml;

pub use rbac::Rbac;
pub use rule::{PolicyRule, merge};
pub use yaml::{YamlError, yaml};
