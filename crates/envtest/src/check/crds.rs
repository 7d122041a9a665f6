//! Errors of the CRDs of an operator.

use opkit_controller::Result;
use opkit_operator::Operator;
use serde_json::Value;

/// Returns the CRDs of an operator as JSON.
pub(super) fn json(operator: &Operator) -> Result<Vec<Value>> {
    let crds = operator.crds();
    let crds: Result<Vec<Value>, _> = crds.iter().map(serde_json::to_value).collect();
    Ok(crds?)
}
