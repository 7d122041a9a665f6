use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;

/// A kind whose status has conditions, so it can report that it is ready.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "robot.opkit.dev", version = "v1", kind = "Robot", namespaced)]
#[kube(status = "RobotStatus")]
pub(crate) struct RobotSpec {}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub(crate) struct RobotStatus {
    /// Required, so that a status without it cannot be decoded.
    phase: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Value>,
}

/// A kind whose status has no conditions.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "robot.opkit.dev", version = "v1", kind = "Part", namespaced)]
#[kube(status = "PartStatus")]
pub(crate) struct PartSpec {}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub(crate) struct PartStatus {
    phase: String,
}

/// A kind without a status.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "robot.opkit.dev", version = "v1", kind = "Plan", namespaced)]
pub(crate) struct PlanSpec {}

#[test]
fn a_kind_with_conditions_is_not_ready_before_its_status_reports_it() {
    let mut robot = Robot::new("one", RobotSpec {});
    assert!(!robot.is_ready(), "no status");
    let mut status = RobotStatus::default();
    robot.status = Some(status.clone());
    assert!(!robot.is_ready(), "no conditions");
    status.conditions = vec![json!({"type": "Working", "status": "True"})];
    robot.status = Some(status.clone());
    assert!(!robot.is_ready(), "another condition");
    status.conditions = vec![json!({"type": "Ready", "status": "True"})];
    robot.status = Some(status);
    assert!(robot.is_ready());
}

#[test]
fn a_kind_without_conditions_is_ready_once_it_exists() {
    assert!(Plan::new("one", PlanSpec {}).is_ready());
    let mut part = Part::new("one", PartSpec {});
    part.status = Some(PartStatus::default());
    assert!(part.is_ready());
    assert!(ConfigMap::default().is_ready());
    assert!(Namespace::default().is_ready(), "it has other conditions");
}

#[test]
fn readiness_by_another_condition_than_ready() {
    let mut robot = Robot::new("one", RobotSpec {});
    assert!(!robot.is_ready_by("Available"));
    let available = |status: &str, observed: i64| {
        let status = json!({"type": "Available", "status": status, "observedGeneration": observed});
        RobotStatus {
            phase: String::new(),
            conditions: vec![status],
        }
    };
    robot.metadata.generation = Some(2);
    robot.status = Some(available("True", 2));
    assert!(robot.is_ready_by("Available"));
    assert!(!robot.is_ready_by("Ready"));
    assert!(!robot.is_ready(), "it has no such condition");
    robot.status = Some(available("True", 1));
    assert!(!robot.is_ready_by("Available"), "of the generation before");
    robot.status = Some(available("False", 2));
    assert!(!robot.is_ready_by("Available"));
    robot.status = Some(available("True", 2));
    robot.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
    assert!(!robot.is_ready_by("Available"), "it is being deleted");
}
