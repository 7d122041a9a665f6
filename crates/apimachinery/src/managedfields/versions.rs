//! Managers that wrote an object in another version than that of the current write.

use serde_json::Value;

use super::apply::conflicts;
use super::managers::{Identity, Managers, Operation};
use super::topology::Node;
use super::{ApplyError, Manager, walk};
use crate::schema::Typed;

/// A write in another version, seen in the version of some of the managers.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ConvertedWrite<'a> {
    /// The version into which both objects were converted.
    pub api_version: &'a str,
    /// The object before the write.
    pub live: &'a Value,
    /// The object after the write.
    pub new: &'a Value,
}

impl<'a> ConvertedWrite<'a> {
    /// Creates a write from `live` to `new`, both in the version `api_version`.
    pub fn new(api_version: &'a str, live: &'a Value, new: &'a Value) -> Self {
        Self {
            api_version,
            live,
            new,
        }
    }
}

/// Removes the fields that a write has changed from the managers in `metadata.managedFields` of
/// `object` that own them in another version. `applier` is the manager of a server-side apply
/// without force.
///
/// # Errors
///
/// [`ApplyError::Conflicts`] if the applier changes a field of another manager.
pub fn release(
    object: &mut Value,
    write: &ConvertedWrite<'_>,
    schema: &Typed<'_>,
    applier: Option<&Manager<'_>>,
) -> Result<(), ApplyError> {
    let Ok(mut all) = Managers::decode(object) else {
        return Ok(());
    };
    let is_own = |version: &str| version == write.api_version;
    let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut all.entries)
        .into_iter()
        .partition(|(_, entry)| is_own(&entry.api_version));
    let mut own = Managers {
        entries: own.into_iter().collect(),
    };
    let comparison = walk::compare(write.live, write.new, &Node::root(schema));
    if let Some(applier) = applier {
        let identity = Identity::new(applier, Operation::Apply);
        let conflicts = conflicts(&own, &identity, &comparison);
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
    }
    own.take(&comparison.changed().union(&comparison.removed), None);
    own.entries.extend(others);
    own.encode(object);
    Ok(())
}
