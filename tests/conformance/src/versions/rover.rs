//! A kind of three versions. The hub is v1; v1beta1 is stored.

pub(super) mod v1alpha1;
pub(super) mod v1beta1;

use opkit::prelude::*;

/// A vehicle.
#[opkit::kind(group = "fleet.opkit.dev", version = "v1", namespaced, status = RoverStatus, shortname = "rv",
    versions(v1beta1::Rover, v1alpha1::Rover), storage = "v1beta1")]
#[opkit(printcolumn("Ready", condition = "Ready"))]
#[derive(PartialEq)]
pub(crate) struct RoverSpec {
    /// Image that the rover runs.
    #[opkit(min_length = 1, max_length = 40)]
    pub image: String,
    #[opkit(min = 0, max = 100, printcolumn = "Replicas")]
    pub replicas: i32,
    #[opkit(max_length = 60, pattern = "^[a-z]+$")]
    pub host: String,
    pub port: u16,
    #[opkit(default = false)]
    pub paused: bool,
    pub network: Option<Network>,
    pub power: Power,
    #[opkit(list_map = "name")]
    pub tools: Vec<Tool>,
    #[opkit(list_atomic)]
    pub route: Vec<Waypoint>,
    pub labels: BTreeMap<String, String>,
    #[opkit(min = 0, max = 3600)]
    pub timeout_seconds: Option<i32>,
}

/// Network of a rover.
#[opkit::schema]
#[derive(PartialEq, Default)]
pub(crate) struct Network {
    pub dns: Option<String>,
    pub vlan: Option<i32>,
}

/// Source of power.
#[opkit::schema]
pub(crate) enum Power {
    Mains,
    Battery,
    Solar,
}

/// Tool of a rover.
#[opkit::schema]
#[derive(PartialEq)]
pub(crate) struct Tool {
    #[opkit(min_length = 1)]
    pub name: String,
    pub weight: Option<i32>,
    pub color: Option<String>,
}

/// Point of a route.
#[opkit::schema]
#[derive(PartialEq)]
pub(crate) struct Waypoint {
    pub x: i32,
    pub y: i32,
}

/// Observed state of a rover.
#[opkit::status]
#[derive(PartialEq)]
pub(crate) struct RoverStatus {
    pub ready_replicas: i32,
    pub battery_percent: Option<i32>,
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}
