//! Manifests that an operator needs in a cluster: CRDs, RBAC, the Deployment, webhooks, admission
//! policies and monitoring.
//!
//! A [`Model`] describes an operator, as its binary prints it; [`Model::objects`] are its objects
//! for one cluster, [`files`] and [`kustomize`] their files. [`Rbac`] builds roles and bindings
//! from [`PolicyRule`]s, [`DeploymentManifest`] builds the Deployment, [`yaml`](fn@yaml) formats
//! manifests as YAML, [`WebhookManifests`] builds webhook configurations with their Service,
//! [`ValidatingPolicy`] and [`MutatingPolicy`] build admission policies, and the module `kinds`
//! builds the CRD of a kind that is declared with `#[opkit::kind(...)]`. The crate does no I/O and
//! reads nothing from a cluster.
//!
//! The names of the objects follow kubebuilder, for instance `robot-operator-manager-role`.

mod deployment;
mod grafana;
mod kind_roles;
#[doc(hidden)]
pub mod kinds;
mod layout;
mod model;
mod monitoring;
mod network_policy;
mod object;
mod policy;
mod rbac;
mod rule;
mod webhooks;
mod yaml;

pub use deployment::{CONTAINER, DeploymentManifest, WEBHOOK_CERTIFICATE_PATH, metrics_service};
pub use grafana::dashboard;
pub use layout::{HEADER, ManifestFile, files, kustomize};
pub use model::{MODEL_VERSION, MetricsPort, Model, ModelError, ModelObject, Part, Settings};
pub use policy::{MutatingPolicy, PolicyResource, ValidatingPolicy};
pub use rbac::Rbac;
pub use rule::{PolicyRule, merge};
pub use webhooks::{CERTIFICATE_SECRET, WebhookManifests};
pub use yaml::{YamlError, yaml};
