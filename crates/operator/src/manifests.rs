//! Formats of the manifests that the operator prints: YAML for a cluster, and the model as JSON.

use opkit_manifests::{Model, Settings, yaml as format};
use serde::Serialize;
use serde_json::Value;

use crate::OperatorError;

/// Returns the objects of the operator, one YAML document each, in the order of creation.
pub(crate) fn yaml(model: &Model) -> Result<String, OperatorError> {
    let objects = model.objects(&Settings::default()).into_iter();
    let objects: Vec<Value> = objects.map(|it| it.object).collect();
    format(&objects).map_err(printing)
}

/// Returns a message for the command `opkit`, such as the model of the operator, as JSON.
pub(crate) fn json(message: &impl Serialize) -> Result<String, OperatorError> {
    let mut text = serde_json::to_string_pretty(message).map_err(printing)?;
    text.push('\n');
    Ok(text)
}

pub(crate) fn printing(cause: impl std::error::Error + Send + Sync + 'static) -> OperatorError {
    OperatorError::Print {
        what: "the manifests",
        cause: cause.into(),
    }
}

#[cfg(test)]
mod tests;
