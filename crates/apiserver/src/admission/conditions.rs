//! Match conditions of webhooks and policies: CEL expressions that exclude requests.

use opkit_cel::{Bindings, Budget, Environment, Program};
use serde_json::{Value, json};

use super::authorizer::{RequestAuthorizer, request_resource};
use super::environment;
use super::request::{self, Presented};
use crate::object;
use crate::registry::Registry;

/// Budget of all match conditions of one webhook or policy, as in Kubernetes.
const BUDGET: u64 = 2_500_000;

/// The match conditions of a webhook or policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct MatchConditions {
    conditions: Vec<MatchCondition>,
    /// Whether a condition with an error excludes the request, instead of failing it.
    is_ignored_on_failure: bool,
}

#[derive(Clone, Debug)]
struct MatchCondition {
    name: String,
    expression: String,
    program: Result<Program, String>,
}

/// The result of the match conditions of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Matched {
    /// All conditions are true.
    Yes,
    /// A condition is false, or has an error that excludes the request.
    No,
    /// Conditions have errors that fail the request.
    Error(String),
}

impl MatchConditions {
    /// Parses the field `matchConditions` of a webhook.
    pub(crate) fn of_webhook(webhook: &Value, is_ignored_on_failure: bool) -> Self {
        Self::parse(
            webhook,
            is_ignored_on_failure,
            environment::match_conditions,
        )
    }

    /// Parses the field `matchConditions` of the spec of a policy.
    pub(crate) fn of_policy(spec: &Value, has_params: bool) -> Self {
        let is_ignored_on_failure = object::text(spec, &["failurePolicy"]) == "Ignore";
        let environment = || environment::conditions_of_policy(has_params);
        Self::parse(spec, is_ignored_on_failure, environment)
    }

    fn parse(
        parent: &Value,
        is_ignored_on_failure: bool,
        environment: impl Fn() -> Environment,
    ) -> Self {
        let declared = object::items(parent, &["matchConditions"]);
        let environment = (!declared.is_empty()).then(environment);
        let conditions = declared.iter().map(|condition| {
            let expression = object::text(condition, &["expression"]).to_owned();
            let compiled = environment
                .as_ref()
                .map(|environment: &Environment| environment.compile(&expression));
            MatchCondition {
                name: object::text(condition, &["name"]).to_owned(),
                program: match compiled {
                    Some(Ok(program)) => Ok(program),
                    Some(Err(error)) => Err(format!("compilation error: {error}")),
                    None => Err("compilation error".to_owned()),
                },
                expression,
            }
        });
        Self {
            conditions: conditions.collect(),
            is_ignored_on_failure,
        }
    }

    /// Evaluates the conditions of a webhook for a request.
    pub(crate) fn evaluate(&self, registry: &Registry, presented: &Presented<'_>) -> Matched {
        self.evaluate_with(registry, presented, None)
    }

    /// Evaluates the conditions of a policy for a request and a parameter.
    pub(crate) fn evaluate_with(
        &self,
        registry: &Registry,
        presented: &Presented<'_>,
        params: Option<&Value>,
    ) -> Matched {
        if self.conditions.is_empty() {
            return Matched::Yes;
        }
        let request = request_variable(presented);
        let authorizer = RequestAuthorizer::new(registry, presented.attributes);
        let resource = request_resource(presented);
        let bindings = Bindings::new()
            .json("object", &presented.object)
            .json("oldObject", &presented.old)
            .json("request", &request)
            .authorizer("authorizer", &authorizer)
            .resource_check("authorizer.requestResource", &authorizer, resource)
            .json("params", params.unwrap_or(&Value::Null));
        let mut budget = Budget::new(BUDGET);
        let mut errors = Vec::new();
        for condition in &self.conditions {
            let value = match &condition.program {
                Ok(program) => program
                    .evaluate(&bindings, &mut budget)
                    .map_err(|error| error.to_string()),
                Err(error) => Err(error.clone()),
            };
            match value.map(|value| value.as_bool()) {
                Ok(Some(true)) => {}
                Ok(Some(false)) => return Matched::No,
                Ok(None) => errors.push(format!("{} is not a boolean", condition.name)),
                Err(error) => errors.push(format!(
                    "expression '{}' resulted in error: {error}",
                    condition.expression
                )),
            }
        }
        match errors.as_slice() {
            [] => Matched::Yes,
            _ if self.is_ignored_on_failure => Matched::No,
            [one] => Matched::Error(one.clone()),
            several => Matched::Error(format!("[{}]", several.join(", "))),
        }
    }
}

/// Returns the value of the CEL variable `request`.
pub(crate) fn request_variable(presented: &Presented<'_>) -> Value {
    let mut fields = request::fields(presented);
    let attributes = presented.attributes;
    fields.insert("dryRun".to_owned(), json!(attributes.is_dry_run()));
    let options = attributes.options();
    if !options.is_null() {
        fields.insert("options".to_owned(), options);
    }
    Value::Object(fields)
}
