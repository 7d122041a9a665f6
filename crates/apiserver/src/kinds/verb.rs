//! The verbs of the API.

use serde::{Deserialize, Serialize};

/// An API verb, with the name that discovery, roles and audit logs use.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// All verbs, in the order in which a real server lists the verbs of a custom resource.
    pub(crate) const ALL: [Self; 8] = [
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Create,
        Self::Update,
        Self::Watch,
    ];

    /// The verbs of the subresources `status` and `scale` of custom resources.
    pub(crate) const OF_SUBRESOURCE: [Self; 3] = [Self::Get, Self::Patch, Self::Update];
}
