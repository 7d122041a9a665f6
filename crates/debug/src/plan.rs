//! The message with which an operator's binary responds to `opkit plan`.

use std::fmt;

use opkit_apimachinery::differences::FieldDifference;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Changes that an operator would make to the objects of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorPlan {
    /// Reason why the operator did not reconcile anything; `None` if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Reconciled objects of each kind.
    pub reconciled: Vec<ReconciledKind>,
    /// Changed objects, in the order of their first writes.
    pub changes: Vec<PlannedObject>,
    /// Objects whose last reconcile failed.
    pub failures: Vec<FailedReconcile>,
    /// Whether the reconciles still changed something when they were ended.
    pub is_unfinished: bool,
}

impl OperatorPlan {
    /// Returns the plan of an operator that did not reconcile anything.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self {
            refused: Some(reason.into()),
            ..Self::default()
        }
    }
}

/// Number of reconciled objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReconciledKind {
    /// Kind, such as `Robot`.
    pub kind: String,
    /// Plural name of the resource, such as `robots`.
    pub plural: String,
    /// Number of objects.
    pub objects: usize,
}

/// What would happen to an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlannedEffect {
    /// The object would be created.
    Created,
    /// The object would be changed.
    #[default]
    Changed,
    /// The object would be deleted.
    Deleted,
}

/// An object that an operator would create, change or delete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlannedObject {
    /// What would happen to the object.
    pub change: PlannedEffect,
    /// Name of the cluster that has the object, if the operator works on several clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// API group; empty for the core group.
    pub group: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Fields of a changed object that differ, without its status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldDifference>,
    /// A created object, without its status; values of Secrets are redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// Objects whose reconciles wrote the object.
    #[serde(rename = "for")]
    pub reconciled: Vec<ObjectName>,
    /// Reason why the server has not validated a write of the object; `None` if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
}

/// Kind, namespace and name of an object. Displayed as `robot/robot-one`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectName {
    /// Kind of the object.
    pub kind: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.to_lowercase(), self.name)
    }
}

/// An object whose last reconcile failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FailedReconcile {
    /// The object.
    pub object: ObjectName,
    /// Name of the controller.
    pub controller: String,
    /// The error and its causes, on one line.
    pub error: String,
}

#[cfg(test)]
mod tests;
