//! Field ownership and server-side apply.
//!
//! Every write is attributed to a manager: by [`update()`] after a create, update or patch, and by
//! [`apply()`] for a server-side apply. The algorithm is that of `structured-merge-diff`: sets of
//! field paths, and functions that merge, compare and remove fields by the list and map types that
//! the schema declares. `metadata` of a custom resource always has the types of ObjectMeta,
//! whatever the schema of the custom resource declares.
//!
//! The following fields are never owned: `apiVersion`, `kind` and, of `metadata`, `name`,
//! `namespace`, `creationTimestamp`, `selfLink`, `uid`, `clusterName`, `generation`,
//! `managedFields` and `resourceVersion`. These are exactly the fields that Kubernetes excludes
//! (`generateName` is owned).
//!
//! Not implemented:
//! - Conversion between versions: the schema in the call applies to all managers.
//! - The reset fields of subresources: the caller removes `status`.
//! - Schemas that change a list or a map between atomic and granular.

mod apply;
mod as_applied;
mod extract;
mod last_applied;
mod managers;
mod path;
mod projection;
mod set;
mod set_ref;
mod topology;
mod unowned;
mod update;
mod versions;
mod walk;

use std::sync::LazyLock;

pub use crate::error::{ApplyError, Conflict};
pub use apply::apply;
pub use extract::extract;
pub use path::PathElement;
pub use projection::Projection;
pub use set::FieldSet;
pub use set_ref::FieldSetRef;
pub use unowned::{atomic_fields, merge};
pub use update::{keep_times, update};
pub use versions::{ConvertedWrite, release};

/// The field manager of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manager<'a> {
    /// Name of the field manager.
    pub name: &'a str,
    /// API version of the object in the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// Subresource of the request; empty for the object itself.
    pub subresource: &'a str,
}

/// Fields of an object that no manager owns, because the server does not track them.
const UNOWNED_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// Fields of `metadata` that no manager owns.
const UNOWNED_METADATA: [&str; 9] = [
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The fields that no manager owns, as a set.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let field = |name: &str| PathElement::Field(name.to_owned());
    let mut set = FieldSet::default();
    for name in UNOWNED_FIELDS.into_iter().chain(["metadata"]) {
        set.insert(&[field(name)]);
    }
    for name in UNOWNED_METADATA {
        set.insert(&[field("metadata"), field(name)]);
    }
    set
});

#[cfg(test)]
mod tests;
