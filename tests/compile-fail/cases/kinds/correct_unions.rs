//! Unions, types with limits, one-of rules and apply configurations: nothing is reported.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus, apply)]
#[opkit(exactly_one_of(left, right), rule("!has(self.left) || self.left != ''"))]
#[opkit(printcolumn("Node", path = ".status.node.name"), printcolumn("App", path = ".spec.labels.app"))]
pub struct RobotSpec {
    pub left: Option<String>,
    pub right: Option<String>,
    #[opkit(list_map = "name", apply)]
    pub nodes: Vec<Node>,
    #[opkit(list_map = "ip")]
    pub foreign: Vec<opkit::k8s_openapi::api::core::v1::HostAlias>,
    pub labels: BTreeMap<String, String>,
    pub power: Option<Power>,
    pub port: Port,
}

#[opkit::status(apply)]
pub struct RobotStatus {
    pub node: Option<Node>,
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}

#[opkit::schema(apply)]
pub struct Node {
    pub name: String,
}

#[opkit::schema(union = "type")]
pub enum Power {
    Mains,
    Battery(Node),
    #[opkit(other)]
    Other(opkit::serde_json::Value),
}

#[opkit::schema]
#[opkit(min = 1, max = 65535)]
pub struct Port(pub i32);

pub fn applied() -> RobotApply {
    let node = NodeApply::new().name("a");
    RobotApply::new("one")
        .label("app", "robot")
        .spec(RobotSpecApply::new().left("l").nodes([node]))
        .status(RobotStatusApply::new())
}
