//! The kind.

use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Secret of the same name as the object, with what is in a Secret of another namespace.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "secret.opkit.dev",
    version = "v1",
    kind = "SecretCopy",
    plural = "secretcopies",
    namespaced,
    status = "SecretCopyStatus"
)]
#[kube(printcolumn(
    name = "Ready",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='Ready')].status"
))]
#[kube(printcolumn(
    name = "Reason",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='Ready')].reason"
))]
#[serde(rename_all = "camelCase")]
pub struct SecretCopySpec {
    /// What to copy.
    pub from: SecretReference,
}

/// A Secret, in any namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl SecretCopySpec {
    /// The key of what to copy.
    pub fn key(&self) -> ObjectKey {
        (&self.from.namespace, &self.from.name).into()
    }
}

/// What is known of a copy.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretCopyStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the copy is there and up to date, and why not.
    pub conditions: Conditions,
}
