//! What a deployment changes in one object.

use opkit_apimachinery::differences::FieldDifference;
use opkit_crds::{Verdict, compare};
use serde::Serialize;
use serde_json::Value;

use crate::permissions::{Permissions, compare as compare_permissions};
use crate::{Change, DeployError, ObjectReference};

/// Effect of a deployment on one object.
///
/// # Examples
/// ```
/// use opkit_deploy::{Deployed, ObjectChange};
///
/// fn changed(deployed: &Deployed) -> Vec<String> {
///     let changes = deployed.changes.iter();
///     changes.map(|change: &ObjectChange| change.object.to_string()).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ObjectChange {
    /// Effect on the object; never [`Change::Unchanged`].
    pub change: Change,
    /// The object.
    pub object: ObjectReference,
    /// Fields of a changed object that differ, without its status. Values of Secrets are redacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldDifference>,
    /// Whether stored objects and clients survive the change of a CRD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crd: Option<CrdChange>,
    /// Effect on the permissions that a changed role grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
}

/// Verdict about the change of a CRD, by the rules that OLM v1 applies before an upgrade.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CrdChange {
    /// The worst verdict about a change.
    pub verdict: Verdict,
    /// Changes that are not compatible.
    pub problems: Vec<opkit_crds::Change>,
}

impl ObjectChange {
    pub(crate) fn new(change: Change, object: ObjectReference) -> Self {
        Self {
            change,
            object,
            fields: Vec::new(),
            crd: None,
            permissions: None,
        }
    }

    /// Returns the change from `before` to `after`, which differ in `fields`.
    pub(crate) fn of_fields(
        before: &Value,
        after: &Value,
        fields: Vec<FieldDifference>,
    ) -> Result<Self, DeployError> {
        let mut changed = Self::new(Change::Changed, ObjectReference::of(after));
        changed.fields = fields;
        match changed.object.kind.as_str() {
            "CustomResourceDefinition" => changed.crd = Some(crd(before, after)?),
            "Role" | "ClusterRole" => changed.permissions = compare_permissions(before, after),
            _ => {}
        }
        Ok(changed)
    }
}

fn crd(before: &Value, after: &Value) -> Result<CrdChange, DeployError> {
    let upgrades = compare(std::slice::from_ref(before), std::slice::from_ref(after))?;
    let changes = upgrades.into_iter().flat_map(|upgrade| upgrade.changes);
    let problems: Vec<_> = changes
        .filter(|change| change.verdict != Verdict::Compatible)
        .collect();
    let worst = problems.iter().map(|change| change.verdict).min();
    Ok(CrdChange {
        verdict: worst.unwrap_or(Verdict::Compatible),
        problems,
    })
}

#[cfg(test)]
mod tests;
