//! The kind.

use opkit::prelude::*;

/// A fleet of identical robots.
#[opkit::kind(
    group = "robot.opkit.dev",
    version = "v1",
    namespaced,
    status = RobotStatus,
    shortname = "rb",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.readyReplicas")
)]
#[opkit(
    printcolumn("Available", path = ".status.readyReplicas"),
    printcolumn("Ready", condition = "Ready"),
    printcolumn(age)
)]
pub struct RobotSpec {
    /// Image that every robot runs.
    #[opkit(printcolumn("Image", priority = 1))]
    pub image: String,
    /// How many robots to keep.
    #[opkit(default = 1, min = 0, max = 100, printcolumn = "Desired")]
    pub replicas: i32,
    /// What every robot runs instead of its image's entry point.
    pub command: Option<Vec<String>>,
}

/// What is known of a fleet.
#[opkit::status]
pub struct RobotStatus {
    /// How many robots are ready.
    pub ready_replicas: i32,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether all robots are ready, and why not.
    pub conditions: Conditions,
}
