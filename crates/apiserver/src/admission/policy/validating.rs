//! The plugin `ValidatingAdmissionPolicy`.

use std::collections::BTreeMap;

use opkit_cel::Value as CelValue;
use serde_json::{Value, json};

use super::definition::{Binding, Policy};
use super::evaluation::{Evaluation, Inputs};
use super::params;
use crate::admission::Attributes;
use crate::admission::conditions::Matched;
use crate::admission::request::Presented;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// Maximum length of a message that an expression computes, in bytes.
const MESSAGE_MAX: usize = 5 * 1024;
/// Maximum length of the value of an audit annotation, in bytes.
const ANNOTATION_MAX: usize = 10 * 1024;
const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A failed validation, or a policy that cannot be evaluated.
struct Denial<'a> {
    policy: &'a Policy,
    binding: Option<&'a Binding>,
    message: String,
    reason: &'a str,
}

/// A failed validation.
struct Failure<'a> {
    /// The position of the validation in the policy.
    index: usize,
    message: String,
    reason: &'a str,
}

/// Evaluates the validating policies for a request. The first failed validation gives the error.
pub(crate) async fn validate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> ApiResult<()> {
    let policies = registry.policies.validating.get(&registry.store);
    let mut denials = Vec::new();
    for policy in policies.iter() {
        let kind = match &policy.matching {
            Ok(matching) => matching.select(registry, attributes, object),
            Err(error) => Err(ApiError::internal(error.as_str())),
        };
        let kind = match kind {
            Ok(Some(kind)) => kind,
            Ok(None) => continue,
            Err(error) => {
                denials.extend(misconfigured(policy, None, &error.message()));
                continue;
            }
        };
        let presented = Presented::new(registry, attributes, kind, object).await?;
        let mut annotations: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for binding in &policy.bindings {
            let selected = match &binding.matching {
                Some(Ok(matching)) => matching.select(registry, attributes, object),
                Some(Err(error)) => Err(ApiError::internal(error.as_str())),
                None => Ok(Some(presented.kind.clone())),
            };
            let params = match selected {
                Ok(Some(_)) => params::collect(registry, attributes, policy, binding),
                Ok(None) => continue,
                Err(error) => Err(error.message()),
            };
            match params {
                Ok(params) => {
                    for param in &params {
                        let inputs = Inputs::new(registry, &presented, param);
                        let mut validator = Validator {
                            policy,
                            binding,
                            annotations: &mut annotations,
                            denials: &mut denials,
                        };
                        validator.validate(registry, &inputs);
                    }
                }
                Err(error) => denials.extend(misconfigured(policy, Some(binding), &error)),
            }
        }
        for (key, values) in annotations {
            let key = format!("{}/{key}", policy.name);
            attributes.write.notes.annotate(key, values.join(", "));
        }
    }
    match denials.first() {
        Some(denial) => Err(denied(attributes, denial)),
        None => Ok(()),
    }
}

/// Returns the denial because of a policy or binding that cannot be used, unless that is ignored.
fn misconfigured<'a>(
    policy: &'a Policy,
    binding: Option<&'a Binding>,
    error: &str,
) -> Option<Denial<'a>> {
    let is_of_policy = binding.is_none() || error.starts_with("failed to find resource");
    let what = if is_of_policy { "policy" } else { "binding" };
    (!policy.is_ignored_on_failure).then(|| Denial {
        policy,
        binding: binding.filter(|_| !is_of_policy),
        message: format!("failed to configure {what}: {error}"),
        reason: "",
    })
}

fn denied(attributes: &Attributes<'_>, denial: &Denial<'_>) -> ApiError {
    let (policy, message) = (&denial.policy.name, &denial.message);
    let message = match denial.binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{policy}' with binding '{}' denied request: {message}",
            binding.name
        ),
        None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
    };
    let (code, reason) = match denial.reason {
        "" | "Invalid" => (422, "Invalid"),
        "Unauthorized" => (401, "Unauthorized"),
        "Forbidden" => (403, "Forbidden"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        other => (422, other),
    };
    let mut error = attributes.forbid(&message).with_reason(code, reason);
    error.add_cause(&message);
    error
}

/// The evaluation of a policy with one binding and one parameter.
struct Validator<'a, 'v> {
    policy: &'a Policy,
    binding: &'a Binding,
    annotations: &'v mut BTreeMap<&'a str, Vec<String>>,
    denials: &'v mut Vec<Denial<'a>>,
}

impl<'a> Validator<'a, '_> {
    fn validate(&mut self, registry: &Registry, inputs: &Inputs<'_>) {
        let (policy, presented) = (self.policy, inputs.presented);
        let matched = policy
            .conditions
            .evaluate_with(registry, presented, Some(inputs.params));
        match matched {
            Matched::Yes => {}
            Matched::No => return,
            Matched::Error(message) => {
                let failures = (!policy.is_ignored_on_failure).then_some(Failure {
                    index: 0,
                    message,
                    reason: "",
                });
                return self.act(presented.attributes, failures.into_iter().collect());
            }
        }
        let mut evaluation = Evaluation::new(policy, inputs);
        let mut failures = Vec::new();
        for (index, validation) in policy.validations.iter().enumerate() {
            let failure = |message: String, reason: &'a str| Failure {
                index,
                message,
                reason,
            };
            match evaluation.evaluate(&validation.expression) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => {
                    let computed = validation.message_expression.as_ref();
                    let computed = computed.and_then(|text| evaluation.evaluate(text).ok());
                    let computed = computed.as_ref().and_then(CelValue::as_str);
                    let message = message(computed, &validation.message).unwrap_or_else(|| {
                        format!("failed expression: {}", validation.expression.text.trim())
                    });
                    failures.push(failure(message, &validation.reason));
                }
                Err(_) if policy.is_ignored_on_failure => {}
                Err(error) => failures.push(failure(error, "")),
            }
        }
        self.act(presented.attributes, failures);
        let mut evaluation = Evaluation::new(policy, inputs);
        for (key, expression) in &policy.audit_annotations {
            match evaluation.evaluate(expression) {
                Ok(CelValue::Null) => {}
                Ok(value) => {
                    let text = value.as_str().unwrap_or_default().trim();
                    let text: String = text.chars().take(ANNOTATION_MAX).collect();
                    let values = self.annotations.entry(key).or_default();
                    if !text.is_empty() && !values.contains(&text) {
                        values.push(text);
                    }
                }
                Err(_) if policy.is_ignored_on_failure => {}
                Err(message) => self.denials.push(Denial {
                    policy,
                    binding: Some(self.binding),
                    message,
                    reason: "",
                }),
            }
        }
        self.annotations.retain(|_, values| !values.is_empty());
    }

    /// Carries out the actions of the binding for failed validations.
    fn act(&mut self, attributes: &Attributes<'_>, failures: Vec<Failure<'a>>) {
        let notes = &attributes.write.notes;
        let (policy, binding) = (self.policy, self.binding);
        for failure in failures {
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => self.denials.push(Denial {
                        policy,
                        binding: Some(binding),
                        message: failure.message.clone(),
                        reason: failure.reason,
                    }),
                    "Warn" => notes.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, failure.message
                    )),
                    "Audit" => {
                        let value = json!([{
                            "message": failure.message, "policy": policy.name,
                            "binding": binding.name, "expressionIndex": failure.index,
                            "validationActions": binding.actions,
                        }]);
                        notes.annotate(FAILURE_ANNOTATION, value.to_string());
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Returns the message of a failed validation: the computed one, unless it is too long or has
/// several lines, or else the declared one.
fn message(computed: Option<&str>, declared: &str) -> Option<String> {
    let computed = computed
        .map(str::trim)
        .filter(|text| text.len() <= MESSAGE_MAX && !text.contains('\n'));
    let mut messages = [computed, Some(declared.trim())].into_iter().flatten();
    messages.find(|text| !text.is_empty()).map(str::to_owned)
}
