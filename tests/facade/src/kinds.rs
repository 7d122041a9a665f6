//! One kind for each of the two declarations.

use opkit::prelude::*;
use opkit::{schemars, serde};

/// Kind with opkit's attribute.
#[opkit::kind(group = "facade.opkit.dev", version = "v1", namespaced, status = GateStatus)]
#[derive(opkit::TypedClient)]
pub(crate) struct GateSpec {
    pub(crate) width: Quantity,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) rest: Option<opkit::serde_json::Value>,
}

#[opkit::status]
pub(crate) struct GateStatus {
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Conditions,
}

/// Kind with kube's derive, whose attributes name the crates through opkit.
#[derive(
    CustomResource, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Clone, Debug,
)]
#[kube(
    group = "facade.opkit.dev",
    version = "v1",
    kind = "Door",
    namespaced,
    crates(
        kube_core = "::opkit::kube::core",
        k8s_openapi = "::opkit::k8s_openapi",
        serde = "::opkit::serde",
        serde_json = "::opkit::serde_json",
        schemars = "::opkit::schemars",
    )
)]
#[serde(crate = "::opkit::serde")]
#[schemars(crate = "::opkit::schemars")]
pub(crate) struct DoorSpec {
    pub(crate) width: i32,
}

#[test]
fn both_are_installed_by_an_operator() {
    let operator = Operator::new("facade").crd::<Gate>().crd::<Door>();
    let names: Vec<_> = operator.crds().iter().map(|crd| crd.name_any()).collect();
    assert_eq!(names, ["gates.facade.opkit.dev", "doors.facade.opkit.dev"]);
}
