//! Revisions: the objects of the last releases, each in a Secret.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{DeployError, Release};

/// Number of revisions that are kept.
pub const REVISIONS_MAX: usize = 10;
/// Limit of the decoded content, in bytes: far more than a Secret can hold compressed manifests of
/// an operator, and little enough for any machine.
const CONTENT_MAX: u64 = 64 << 20;

/// Label with the name of the operator.
const OPERATOR_LABEL: &str = "deploy.opkit.dev/operator";
/// Label with the number of the revision.
const REVISION_LABEL: &str = "deploy.opkit.dev/revision";

/// Objects of a release that was deployed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Revision {
    /// Number of the revision, from 1.
    pub number: u64,
    /// Version of the operator.
    pub version: String,
    /// Objects of the release, without CRDs.
    pub objects: Vec<Value>,
    /// Objects that the operator creates when it runs.
    pub runtime_objects: Vec<Value>,
}

impl Revision {
    pub(crate) fn of(release: &Release, number: u64) -> Self {
        Self {
            number,
            version: release.version.clone(),
            objects: release.objects.clone(),
            runtime_objects: release.runtime_objects.clone(),
        }
    }

    /// Reports whether both revisions have the same objects.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        let content = |it: &Self| Self {
            number: 0,
            ..it.clone()
        };
        content(self) == content(other)
    }

    /// Returns the Secret of the revision.
    pub(crate) fn secret(&self, operator: &str, namespace: &str) -> Result<Value, DeployError> {
        let name = secret_name(operator, self.number);
        let failed = |problem: String| DeployError::Revision {
            secret: name.clone(),
            problem,
        };
        let json = serde_json::to_vec(self).map_err(|error| failed(error.to_string()))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let zipped = encoder.write_all(&json).and_then(|()| encoder.finish());
        let zipped = zipped.map_err(|error| failed(error.to_string()))?;
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "deploy.opkit.dev/revision",
            "immutable": true,
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": {
                    OPERATOR_LABEL: operator,
                    REVISION_LABEL: self.number.to_string(),
                    "app.kubernetes.io/managed-by": "opkit",
                },
            },
            "data": {"revision": STANDARD.encode(zipped)},
        }))
    }

    /// Reads the Secret of a revision.
    pub(crate) fn read(secret: &Value) -> Result<Self, DeployError> {
        let field = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str);
        let failed = |problem: String| DeployError::Revision {
            secret: field("/metadata/name").unwrap_or_default().to_owned(),
            problem,
        };
        let data = field("/data/revision").ok_or_else(|| failed("it has no data".to_owned()))?;
        let zipped = STANDARD.decode(data);
        let zipped = zipped.map_err(|error| failed(error.to_string()))?;
        let mut json = Vec::new();
        let mut decoder = GzDecoder::new(zipped.as_slice()).take(CONTENT_MAX);
        let read = decoder.read_to_end(&mut json);
        read.map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&json).map_err(|error| failed(error.to_string()))
    }
}

/// Returns the label selector of the revisions of an operator.
pub(crate) fn selector(operator: &str) -> String {
    format!("{OPERATOR_LABEL}={operator}")
}

/// Returns the number in the labels of a Secret, or `None` if it is not a revision.
pub(crate) fn number(secret: &Value) -> Option<u64> {
    let labels = secret.pointer("/metadata/labels")?;
    labels.get(REVISION_LABEL)?.as_str()?.parse().ok()
}

/// Returns the numbers of the revisions to delete, so that [`REVISIONS_MAX`] remain.
pub(crate) fn outdated(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers.split_off(REVISIONS_MAX.min(numbers.len()))
}

/// Returns the revision to return to: the one that is asked for, or the newest before the current
/// one.
pub(crate) fn target(numbers: &[u64], wanted: Option<u64>) -> Option<u64> {
    let current = numbers.iter().max()?;
    match wanted {
        Some(wanted) => numbers.iter().copied().find(|number| *number == wanted),
        None => numbers
            .iter()
            .copied()
            .filter(|number| number < current)
            .max(),
    }
}

pub(crate) fn secret_name(operator: &str, number: u64) -> String {
    format!("{operator}-revision-{number}")
}

#[cfg(test)]
mod tests;
