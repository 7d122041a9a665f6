//! The first version: other names, one field for host and port, a field that is gone.

use opkit::prelude::*;

#[opkit::version(of = super::Rover, version = "v1alpha1", status = RoverStatus,
    deprecated = "fleet.opkit.dev/v1alpha1 Rover ends with 2.0: use v1")]
#[opkit(added(paused = false, labels, network.dns))]
#[derive(PartialEq)]
pub(crate) struct RoverSpec {
    #[opkit(min_length = 1, max_length = 40)]
    pub image: String,
    #[opkit(renamed = replicas, min = 0, max = 100, printcolumn = "Size")]
    pub size: i32,
    #[opkit(
        split(host, port),
        with(split_endpoint, join_endpoint),
        pattern = "^[a-z]+:(0|[1-9][0-9]{0,3})$"
    )]
    pub endpoint: String,
    #[opkit(removed)]
    pub legacy_mode: Option<bool>,
    #[opkit(removed = "none")]
    pub firmware: String,
    #[opkit(moved = network.vlan)]
    pub vlan: Option<i32>,
    pub power: Power,
    #[opkit(list_map = "name")]
    pub tools: Vec<Tool>,
    #[opkit(list_atomic)]
    pub route: Vec<Waypoint>,
    #[opkit(renamed = timeout_seconds, changed_with(to_seconds, to_minutes), lossy, min = 0, max = 60)]
    pub timeout_minutes: Option<i32>,
}

pub(super) fn split_endpoint(endpoint: String) -> (String, u16) {
    let (host, port) = endpoint.split_once(':').unwrap_or((&endpoint, "0"));
    (host.to_owned(), port.parse().unwrap_or(u16::MAX))
}

pub(super) fn join_endpoint(host: String, port: u16) -> String {
    format!("{host}:{port}")
}

fn to_seconds(minutes: Option<i32>) -> Option<i32> {
    minutes.map(|minutes| minutes.saturating_mul(60))
}

fn to_minutes(seconds: Option<i32>) -> Option<i32> {
    seconds.map(|seconds| seconds / 60)
}

#[opkit::version(of = super::Power)]
#[opkit(added(Solar = Battery))]
pub(crate) enum Power {
    #[opkit(renamed = Mains)]
    Cable,
    Battery,
    #[opkit(removed = Mains)]
    Diesel,
}

#[opkit::version(of = super::Tool)]
#[opkit(added(color))]
#[derive(PartialEq)]
pub(crate) struct Tool {
    #[opkit(min_length = 1)]
    pub name: String,
    #[opkit(renamed = weight)]
    pub grams: Option<i32>,
    #[opkit(removed)]
    pub vendor: Option<String>,
}

#[opkit::version(of = super::Waypoint)]
#[derive(PartialEq)]
pub(crate) struct Waypoint {
    pub x: i32,
    pub y: i32,
    #[opkit(removed)]
    pub note: Option<String>,
}

#[opkit::version(of = super::RoverStatus, status)]
#[opkit(added(battery_percent))]
#[derive(PartialEq)]
pub(crate) struct RoverStatus {
    #[opkit(renamed = ready_replicas)]
    pub ready: i32,
    #[opkit(removed)]
    pub phase: Option<String>,
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}
