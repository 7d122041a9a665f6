//! The kind.

use opkit::prelude::*;

/// A Secret of the same name as the object, with what is in a Secret of another namespace.
#[opkit::kind(group = "secret.opkit.dev", version = "v1", namespaced, status = SecretCopyStatus)]
#[opkit(
    printcolumn("Ready", condition = "Ready"),
    printcolumn("Reason", path = ".status.conditions[?(@.type=='Ready')].reason")
)]
pub struct SecretCopySpec {
    /// What to copy.
    pub from: SecretReference,
}

/// A Secret, in any namespace.
#[opkit::schema]
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
#[opkit::status]
pub struct SecretCopyStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the copy is there and up to date, and why not.
    pub conditions: Conditions,
}
