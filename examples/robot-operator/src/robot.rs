//! The kind `Robot`.

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
    /// Number of robots to run.
    #[opkit(default = 1, min = 0, max = 100, printcolumn = "Desired")]
    pub replicas: i32,
    /// Command that every robot runs instead of its image's entry point.
    pub command: Option<Vec<String>>,
}

/// Observed state of a fleet.
#[opkit::status]
pub struct RobotStatus {
    /// Number of robots that are ready.
    pub ready_replicas: i32,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Ready`: whether all robots are ready, with a reason.
    pub conditions: Conditions,
}
