//! Installs an operator in a cluster, and removes it again.
//!
//! A [`Deployer`] applies the objects of a [`Release`] with server-side apply. Its inventory is an
//! ApplySet ([KEP-3659]): each object has a label with the id of the set, and a Secret names the
//! kinds and namespaces of the set, so other tools recognise it. Objects that an
//! earlier release had and this one does not are deleted. Each release is kept as a revision, a
//! Secret with its objects, to which [`Deployer::rollback`] returns.
//!
//! CRDs are not members of the set: they are never pruned and never rolled back, because deleting a
//! CRD deletes all objects of its kind. [`Deployer::uninstall`] and [`Deployer::undeploy`] delete
//! only CRDs without objects, unless the caller forces it.
//!
//! [`Deployer::plan`] returns what a deployment would change: it sends the requests of a deployment
//! as dry runs.
//!
//! The crate prints nothing: it reports [`Progress`] to a function of the caller.
//!
//! [KEP-3659]: https://github.com/kubernetes/enhancements/issues/3659

mod applyset;
mod cluster;
mod crds;
mod deployer;
mod error;
mod history;
mod inventory;
mod object_change;
mod permissions;
mod plan;
mod progress;
mod reference;
mod release;
mod revision;
mod rollout;
mod undeploy;

pub use applyset::{
    ApplySet, CONTAINS_ANNOTATION, ID_LABEL, NAMESPACES_ANNOTATION, PART_OF_LABEL,
    TOOLING_ANNOTATION,
};
pub use crds::Uninstalled;
pub use deployer::{Deployed, Deployer};
pub use error::DeployError;
pub use object_change::{CrdChange, ObjectChange};
pub use permissions::Permissions;
pub use plan::Plan;
pub use progress::{Change, Progress};
pub use reference::ObjectReference;
pub use release::Release;
pub use revision::{REVISIONS_MAX, Revision};
pub use rollout::{Rollout, RolloutState};
pub use undeploy::Undeployed;
