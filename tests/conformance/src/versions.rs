//! Several versions of a kind: the CRD, and objects that clients write and read in any version.

mod declared;
mod migration;
pub(crate) mod rover;
mod served;

use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opkit::prelude::*;

use self::rover::Rover;

fn operator() -> Operator {
    Operator::new("rover-operator").crd::<Rover>()
}

/// Returns a client for untyped objects of one version.
pub(crate) fn client(plane: &ControlPlane, version: &str, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("fleet.opkit.dev", version, kind);
    let plural = format!("{}s", kind.to_lowercase());
    let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
    Api::default_namespaced_with(plane.client(), &resource)
}
