//! The kind of the guide with most attributes: nothing is reported.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

/// A fleet of identical robots.
#[opkit::kind(group = "robot.opkit.dev", version = "v1", namespaced,
    status = RobotStatus, shortname = "rb", category = "fleet",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.readyReplicas"), selectable = ".spec.image")]
#[opkit(printcolumn("Ready", condition = "Ready"), printcolumn("Node", path = ".status.node", priority = 1), printcolumn(age))]
#[opkit(rule("!has(self.minReplicas) || self.minReplicas <= self.replicas", message = "minReplicas is above replicas", field = ".minReplicas"))]
pub struct RobotSpec {
    /// Image that every robot runs.
    #[opkit(min_length = 1, max_length = 255, pattern = "^[a-z0-9./:@_-]+$", printcolumn = "Image")]
    pub image: String,
    #[opkit(default = 1, min = 0, max = 100, printcolumn = "Desired")]
    pub replicas: i32,
    pub min_replicas: Option<i32>,
    #[opkit(nullable)]
    pub budget: Option<Quantity>,
    #[opkit(immutable)]
    pub region: Region,
    #[opkit(list_map = "name", max_items = 16)]
    pub tools: Vec<Tool>,
    #[opkit(list_set, items(max_length = 63, format = "k8s-short-name"))]
    pub tags: Vec<String>,
    #[opkit(max_properties = 32, values(max_length = 63))]
    pub labels: BTreeMap<String, String>,
    #[opkit(rule("quantity(self).isGreaterThan(quantity('0'))", reason = FieldValueInvalid))]
    pub memory: Quantity,
    #[opkit(embedded_resource)]
    pub manifest: Option<opkit::serde_json::Value>,
    #[opkit(struct_type = "atomic")]
    pub power: Power,
}

/// On the wire `{type: Battery, battery: {hours: 8}}`.
#[opkit::schema(union = "type")]
pub enum Power {
    Mains,
    Battery(Battery),
    Solar(Solar),
}

#[opkit::schema]
pub struct Battery {
    pub hours: i32,
}

#[opkit::schema]
pub struct Solar {
    pub watts: u32,
}

#[opkit::schema]
pub enum Region {
    Eu,
    Us,
    #[opkit(other)]
    Other(String),
}

#[opkit::schema]
pub struct Tool {
    pub name: String,
}

#[opkit::status]
pub struct RobotStatus {
    pub ready_replicas: i32,
    pub node: Option<String>,
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}

pub fn operator() -> Operator {
    Operator::new("robot-operator").crd::<Robot>()
}
