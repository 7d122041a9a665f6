//! Manifests that an operator needs in a cluster: CRDs, RBAC, webhooks and admission policies.
//!
//! [`Rbac`] builds roles and role bindings from [`PolicyRule`]s, [`yaml`](fn@yaml) formats
//! manifests as YAML, [`WebhookManifests`] builds webhook configurations with their Service,
//! [`ValidatingPolicy`] and [`MutatingPolicy`] build admission policies, and the module `kinds`
//! builds the CRD of a kind that is declared with `#[opkit::kind(...)]`. The crate does no I/O and
//! reads nothing from a cluster.
//!
//! The names of the objects follow kubebuilder, for instance `robot-operator-manager-role`.

#[doc(hidden)]
pub mod kinds;
mod policy;
mod rbac;
mod rule;
mod webhooks;
mod yaml;

pub use policy::{MutatingPolicy, PolicyResource, ValidatingPolicy};
pub use rbac::Rbac;
pub use rule::{PolicyRule, merge};
pub use webhooks::{CERTIFICATE_SECRET, WebhookManifests};
pub use yaml::{YamlError, yaml};
