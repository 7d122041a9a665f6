//! Evaluation of the expressions of a policy for one request and one parameter.

use opkit_cel::{Bindings, Budget, EvaluationError, RUNTIME_COST_BUDGET, Value as CelValue};
use serde_json::Value;

use super::definition::{Expression, Policy};
use crate::admission::authorizer::{RequestAuthorizer, request_resource};
use crate::admission::conditions::request_variable;
use crate::admission::request::Presented;
use crate::object;
use crate::registry::Registry;
use crate::store::Key;

/// The values of the variables of a policy, except those that the policy composes.
#[derive(Debug)]
pub(super) struct Inputs<'a> {
    pub(super) presented: &'a Presented<'a>,
    pub(super) params: &'a Value,
    request: Value,
    namespace: Value,
    authorizer: RequestAuthorizer<'a>,
}

impl<'a> Inputs<'a> {
    pub(super) fn new(
        registry: &'a Registry,
        presented: &'a Presented<'a>,
        params: &'a Value,
    ) -> Self {
        Self {
            request: request_variable(presented),
            namespace: namespace(registry, presented),
            authorizer: RequestAuthorizer::new(registry, presented.attributes),
            presented,
            params,
        }
    }

    /// Returns the bindings of all variables, except those that the policy composes.
    fn bindings(&self) -> Bindings<'_> {
        Bindings::new()
            .json("object", &self.presented.object)
            .json("oldObject", &self.presented.old)
            .json("request", &self.request)
            .json("params", self.params)
            .json("namespaceObject", &self.namespace)
            .authorizer("authorizer", &self.authorizer)
            .resource_check(
                "authorizer.requestResource",
                &self.authorizer,
                request_resource(self.presented),
            )
    }
}

/// Returns the value of `namespaceObject`: the fields of the namespace that expressions can use.
fn namespace(registry: &Registry, presented: &Presented<'_>) -> Value {
    let kind = presented.attributes.kind();
    let name = presented.attributes.namespace();
    if name.is_empty() || (kind.group.is_empty() && kind.plural == "namespaces") {
        return Value::Null;
    }
    let Some(stored) = registry.store.get("namespaces", &Key::new("", name)) else {
        return Value::Null;
    };
    let mut namespace = (*stored).clone();
    for field in ["managedFields", "ownerReferences", "selfLink"] {
        object::set_meta(&mut namespace, field, Value::Null);
    }
    namespace
}

/// The evaluation of a policy: its composed variables and its budget.
pub(super) struct Evaluation<'a> {
    policy: &'a Policy,
    bindings: Bindings<'a>,
    /// Names of the variables that have been evaluated.
    composed: Vec<&'a str>,
    budget: Budget,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(policy: &'a Policy, inputs: &'a Inputs<'a>) -> Self {
        Self {
            policy,
            bindings: inputs.bindings(),
            composed: Vec::new(),
            budget: Budget::new(RUNTIME_COST_BUDGET),
        }
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The error in the words of Kubernetes.
    pub(super) fn evaluate(&mut self, expression: &'a Expression) -> Result<CelValue<'a>, String> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Err(format!("compilation error: compilation failed: {error}")),
        };
        self.compose(&|variable| program.uses(&format!("variables.{variable}")));
        let value = program.evaluate(&self.bindings, &mut self.budget);
        value.map_err(|error| match error {
            EvaluationError::BudgetExceeded => "validation failed due to running out of cost \
                 budget, no further validation rules will be run"
                .to_owned(),
            error => format!(
                "expression '{}' resulted in error: {error}",
                expression.text
            ),
        })
    }

    /// Evaluates the composed variables that an expression uses, and those that they use.
    fn compose(&mut self, is_used: &dyn Fn(&str) -> bool) {
        let policy = self.policy;
        for (name, expression) in &policy.variables {
            if !is_used(name) || self.composed.contains(&name.as_str()) {
                continue;
            }
            self.composed.push(name);
            let value = match &expression.program {
                Ok(program) => {
                    self.compose(&|other| program.uses(&format!("variables.{other}")));
                    program
                        .evaluate(&self.bindings, &mut self.budget)
                        .map_err(|error| {
                            format!("composited variable {name:?} fails to evaluate: {error}")
                        })
                }
                Err(error) => Err(format!(
                    "composited variable {name:?} fails to compile: {error}"
                )),
            };
            let qualified = format!("variables.{name}");
            let bindings = std::mem::take(&mut self.bindings);
            self.bindings = match value {
                Ok(value) => bindings.value(qualified, value),
                Err(error) => bindings.failed(qualified, error),
            };
        }
    }
}
