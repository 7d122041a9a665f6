//! Checks of an operator that need all of its types, and no control plane.

mod crds;
mod samples;

use opkit_controller::Result;
use opkit_operator::{Operator, RunOptions};
use serde_json::Value;

use crate::{TestError, round_trip};

/// Checks what neither the macros nor the compiler can: the CRDs, webhook configurations and
/// admission policies of the operator, with the API server's own validation, and the objects in
/// `config/samples`.
///
/// The errors name the kind, the version and the field: schemas that are not structural, defaults
/// that their own schema forbids, types and costs of CEL rules, list keys, selectable fields, and
/// sample objects that a server would refuse or whose unknown fields it would drop, CEL expressions
/// of match conditions and policies. For kinds with
/// several versions, 200 random objects of each version are converted to each other version and
/// back, or as many as the environment variable `OPKIT_ROUND_TRIPS` sets. All problems are in one
/// error.
///
/// # Errors
/// If a server would refuse one of these objects, or if a conversion loses a value.
///
/// # Examples
/// ```
/// use opkit_operator::Operator;
///
/// # mod robots { pub fn operator() -> opkit_operator::Operator { opkit_operator::Operator::new("a") } }
/// fn the_operator_is_sound() -> opkit_controller::Result {
///     opkit_envtest::check(&robots::operator())
/// }
/// # the_operator_is_sound().unwrap();
/// ```
pub fn check(operator: &Operator) -> Result<()> {
    let crds = crds::json(operator)?;
    let mut problems = opkit_apiserver::crd_problems(&crds);
    problems.extend(opkit_apiserver::object_problems(&admission(operator)));
    problems.extend(samples::problems(&crds)?);
    problems.extend(round_trip::operator_problems(operator));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(TestError::Unsound {
            name: operator.name().to_owned(),
            report: problems.join("\n"),
        }
        .into()),
    }
}

/// Returns the webhook configurations of an operator with what belongs to them, and its policies.
fn admission(operator: &Operator) -> Vec<Value> {
    let webhooks = operator.webhook_manifests(&RunOptions::default());
    let mut objects = webhooks.map(|it| it.documents()).unwrap_or_default();
    objects.extend_from_slice(operator.policies());
    objects
}

#[cfg(test)]
mod tests;
