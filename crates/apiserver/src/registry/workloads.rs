//! Validation of the status of workloads, with the messages of Kubernetes.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

/// The rules for the status of a workload.
struct StatusRules {
    resource: &'static str,
    /// Fields that cannot be negative.
    counters: &'static [&'static str],
    /// Fields that cannot be greater than `status.replicas`.
    parts: &'static [&'static str],
    /// Message if more replicas are available than ready.
    available: &'static str,
}

const STATUS: &[StatusRules] = &[
    StatusRules {
        resource: "statefulsets.apps",
        counters: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        parts: &[
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ],
        available: "cannot be greater than status.readyReplicas",
    },
    StatusRules {
        resource: "deployments.apps",
        counters: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
        available: "cannot be greater than readyReplicas",
    },
    StatusRules {
        resource: "replicasets.apps",
        counters: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        available: "cannot be greater than readyReplicas",
    },
];

/// Returns the errors in the status of a workload.
pub(super) fn status_errors(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let resource = kind.group_resource();
    let Some(rules) = STATUS.iter().find(|rules| rules.resource == resource) else {
        return Vec::new();
    };
    let count = |field: &str| object::int(object, &["status", field]);
    let invalid = |field: &str, detail: &str| {
        FieldError::invalid(format!("status.{field}"), &json!(count(field)), detail)
    };
    let negative = rules.counters.iter().filter(|field| count(field) < 0);
    let mut errors: Vec<FieldError> = negative
        .map(|field| invalid(field, "must be greater than or equal to 0"))
        .collect();
    let parts = rules.parts.iter();
    let greater = parts.filter(|field| count(field) > count("replicas"));
    errors.extend(greater.map(|field| invalid(field, "cannot be greater than status.replicas")));
    if count("availableReplicas") > count("readyReplicas") {
        errors.push(invalid("availableReplicas", rules.available));
    }
    errors
}
