//! A kind with most attribute keywords, and the robot declared with kube's derive.

use k8s_openapi::api::core::v1::{PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use opkit::prelude::*;
use serde_json::Value;

/// A machine that mows a lawn.
#[opkit::kind(
    group = "garden.opkit.dev",
    version = "v1",
    namespaced,
    status = MowerStatus,
    shortname = "mo",
    category = "garden",
    category = "machines",
    selectable = ".spec.model",
    scale(spec_replicas_path = ".spec.blades", status_replicas_path = ".status.mowed")
)]
#[opkit(printcolumn("Ready", condition = "Ready"))]
#[opkit(
    printcolumn("Mowed", path = ".status.mowed", description = "Square metres."),
    printcolumn(age)
)]
#[opkit(rule(
    "self.blades < 9 || self.quiet == false",
    message = "nine blades are loud",
    reason = FieldValueForbidden,
    field = ".quiet"
))]
#[derive(PartialEq, Default)]
pub(crate) struct MowerSpec {
    /// Name in the catalogue.
    #[opkit(
        min_length = 1,
        max_length = 20,
        pattern = "^[a-z0-9-]+$",
        printcolumn = "Model"
    )]
    pub(crate) model: String,
    #[opkit(default = 3, min = 1, max = 9, printcolumn("Blades", priority = 1))]
    pub(crate) blades: i32,
    #[opkit(default = "Cordless")]
    pub(crate) type_: String,
    #[opkit(immutable)]
    pub(crate) region: Region,
    pub(crate) port: u16,
    #[opkit(default = "64Mi")]
    pub(crate) memory: Quantity,
    #[opkit(default = "25%")]
    pub(crate) surge: IntOrString,
    #[opkit(default = true)]
    pub(crate) quiet: bool,
    #[opkit(nullable)]
    pub(crate) budget: Option<Quantity>,
    #[opkit(immutable)]
    pub(crate) owner: Option<String>,
    #[opkit(rename = "backup")]
    pub(crate) second_region: Option<Region>,
    #[opkit(default = ["stable"])]
    pub(crate) channels: Vec<String>,
    #[opkit(list_map = "name")]
    pub(crate) tools: Vec<Tool>,
    #[opkit(list_set, max_items = 8, items(max_length = 63))]
    pub(crate) tags: Vec<String>,
    #[opkit(max_properties = 4, values(min_length = 1))]
    pub(crate) labels: BTreeMap<String, String>,
    #[opkit(required)]
    pub(crate) lawns: Vec<String>,
    #[opkit(list_atomic, min_items = 1)]
    pub(crate) routes: Vec<String>,
    #[opkit(min_properties = 1)]
    pub(crate) notes: Option<BTreeMap<String, String>>,
    #[opkit(struct_type = "atomic")]
    pub(crate) spare: Option<Tool>,
    #[opkit(format = "date")]
    pub(crate) built: Option<String>,
    #[opkit(default = Mode::SelfDriving)]
    pub(crate) mode: Mode,
    pub(crate) resources: Option<ResourceRequirements>,
    pub(crate) template: Option<PodTemplateSpec>,
    pub(crate) anything: Option<Value>,
    #[opkit(embedded_resource)]
    pub(crate) manifest: Option<Value>,
}

/// Region of sale.
#[opkit::schema]
#[derive(Default)]
pub(crate) enum Region {
    /// The whole European Union.
    #[default]
    Eu,
    #[opkit(rename = "us-east")]
    UsEast,
}

#[opkit::schema]
#[opkit(rename_all = "kebab-case")]
pub(crate) enum Mode {
    SelfDriving,
    Pushed,
}

/// Accessory of a mower.
#[opkit::schema]
#[derive(PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    #[opkit(min = 1)]
    pub(crate) size: Option<i32>,
}

/// Observed state of a mower.
#[opkit::status]
pub(crate) struct MowerStatus {
    pub(crate) mowed: u32,
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Conditions,
}

#[allow(
    clippy::duplicated_attributes,
    reason = "printer columns may be of one type"
)]
pub(super) mod kubes {
    use opkit::prelude::*;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// A fleet of identical robots.
    #[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
    #[kube(
        group = "robot.opkit.dev",
        version = "v1",
        kind = "Robot",
        namespaced,
        shortname = "rb",
        status = "RobotStatus"
    )]
    #[kube(scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.readyReplicas"
    ))]
    #[kube(printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"))]
    #[kube(printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.readyReplicas"
    ))]
    #[kube(printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ))]
    #[kube(printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ))]
    #[kube(printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.image",
        priority = 1
    ))]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct RobotSpec {
        /// Image that every robot runs.
        pub(crate) image: String,
        /// Number of robots to run.
        #[serde(default = "one")]
        #[schemars(range(min = 0, max = 100))]
        pub(crate) replicas: i32,
        /// Command that every robot runs instead of its image's entry point.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub(crate) command: Option<Vec<String>>,
    }

    fn one() -> i32 {
        1
    }

    /// Observed state of a fleet.
    #[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
    #[serde(rename_all = "camelCase", default)]
    pub(crate) struct RobotStatus {
        /// Number of robots that are ready.
        pub(crate) ready_replicas: i32,
        /// Generation of the spec that this status belongs to.
        pub(crate) observed_generation: Option<i64>,
        /// `Ready`: whether all robots are ready, with a reason.
        pub(crate) conditions: Conditions,
    }
}
