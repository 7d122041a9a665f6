//! Changes between two states of CRDs, and whether stored objects and clients survive them.
//!
//! The rules and their names are those of OLM v1's preflight check `crdUpgradeSafety`: the
//! validations of kubernetes-sigs/crdify with OLM's settings. A change that no rule judges has the
//! rule `unhandled`, which OLM refuses as well.

mod crd;
mod crd_rules;
mod flatten;
mod objects;
mod property_rules;
mod report;
mod schema;
mod versions;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::CrdError;
use crd::Crd;

pub use objects::{InvalidObject, ObjectCheck, StoredObjects, common_version};
pub use report::render;

/// Verdict about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Verdict {
    /// Stored objects or clients that were valid before may be invalid after the change.
    Breaking,
    /// No rule judges the change, so that it may break stored objects.
    Unhandled,
    /// The change is safe.
    Compatible,
}

/// One change between two states of a CRD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Version with the change, such as `v1`; `v1beta1 -> v1` for a difference between two served
    /// versions of the new CRD; `None` if the change is not about one version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Path of the field in the schema, such as `.spec.tools.items.name`; empty for the schema as a
    /// whole, and for changes outside of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Verdict about the change.
    pub verdict: Verdict,
    /// Name of the rule, such as `maximum` or `existingFieldRemoval`.
    pub rule: &'static str,
    /// The change in words, such as `maximum decreased: 100 -> 50`.
    pub message: String,
}

/// Changes of one CRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Upgrade {
    /// Name of the CRD.
    pub name: String,
    /// Changes: those of the whole CRD, then those of each version.
    pub changes: Vec<Change>,
    /// Stored objects, if the caller has validated them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<StoredObjects>,
    /// What the caller could not compare or validate, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Upgrade {
    /// Reports whether OLM v1 would upgrade the CRD, because no change is breaking or unhandled,
    /// and all validated objects stay valid.
    pub fn is_safe(&self) -> bool {
        let mut changes = self.changes.iter();
        let objects = self.objects.as_ref();
        changes.all(|change| change.verdict == Verdict::Compatible)
            && objects.is_none_or(|objects| objects.invalid.is_empty())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Breaking => "BREAKS",
            Self::Unhandled => "UNKNOWN",
            Self::Compatible => "ok",
        })
    }
}

/// Returns the changes from the CRDs of `old` to those of `new`, for each CRD of `new`, in the
/// order of `new`. A CRD that only `new` has is one compatible change; a CRD that only `old` has
/// stays in a cluster and is not mentioned.
///
/// An old CRD without `status.storedVersions`, such as one from a file, counts as stored in its
/// storage version.
///
/// # Examples
/// ```
/// use opkit_crds::{Verdict, compare};
/// use serde_json::{Value, json};
///
/// fn robots(maximum: i64) -> Value {
///     json!({
///         "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
///         "metadata": {"name": "robots.example.com"},
///         "spec": {"scope": "Namespaced", "versions": [{
///             "name": "v1", "served": true, "storage": true,
///             "schema": {"openAPIV3Schema": {"type": "object", "properties": {
///                 "spec": {"type": "object", "properties": {
///                     "replicas": {"type": "integer", "maximum": maximum},
///                 }},
///             }}},
///         }]},
///     })
/// }
/// let upgrades = compare(&[robots(100)], &[robots(50)])?;
/// let change = &upgrades[0].changes[0];
/// assert_eq!((change.verdict, change.rule), (Verdict::Breaking, "maximum"));
/// assert_eq!(change.field, ".spec.replicas");
/// assert_eq!(change.message, "maximum decreased: 100 -> 50");
/// # Ok::<(), opkit_crds::CrdError>(())
/// ```
///
/// # Errors
/// If a document is not a CRD, or has no name or no versions.
pub fn compare(old: &[Value], new: &[Value]) -> Result<Vec<Upgrade>, CrdError> {
    let old: Vec<Crd> = old.iter().map(Crd::parse).collect::<Result<_, _>>()?;
    let new: Vec<Crd> = new.iter().map(Crd::parse).collect::<Result<_, _>>()?;
    let upgrade = |new: &Crd| {
        let before = old.iter().find(|old| old.name == new.name);
        Upgrade {
            name: new.name.clone(),
            changes: match before {
                Some(before) => changes(before, new),
                // There are no stored objects.
                None => vec![Change {
                    version: None,
                    field: String::new(),
                    verdict: Verdict::Compatible,
                    rule: "crd",
                    message: "new CRD".to_owned(),
                }],
            },
            objects: None,
            notes: Vec::new(),
        }
    };
    Ok(new.iter().map(upgrade).collect())
}

fn changes(old: &Crd, new: &Crd) -> Vec<Change> {
    let mut changes = crd_rules::check(old, new);
    changes.extend(versions::same(old, new));
    changes.extend(versions::served(old, new));
    // The changes of the whole CRD come first, because they have no version.
    changes.sort();
    changes
}

#[cfg(test)]
mod tests;
