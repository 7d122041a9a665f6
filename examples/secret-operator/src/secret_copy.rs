//! The kind `SecretCopy`.

use opkit::prelude::*;

/// A Secret with the name of the object and the content of a Secret in another namespace.
#[opkit::kind(group = "secret.opkit.dev", version = "v1", namespaced, status = SecretCopyStatus)]
#[opkit(
    printcolumn("Ready", condition = "Ready"),
    printcolumn("Reason", path = ".status.conditions[?(@.type=='Ready')].reason")
)]
pub struct SecretCopySpec {
    /// Secret to copy.
    pub from: SecretReference,
}

/// Reference to a Secret in any namespace.
#[opkit::schema]
pub struct SecretReference {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
}

impl SecretCopySpec {
    /// Returns the key of the Secret to copy.
    pub fn key(&self) -> ObjectKey {
        (&self.from.namespace, &self.from.name).into()
    }
}

/// Observed state of a copy.
#[opkit::status]
pub struct SecretCopyStatus {
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Ready`: whether the copy exists and is up to date, with a reason.
    pub conditions: Conditions,
}
