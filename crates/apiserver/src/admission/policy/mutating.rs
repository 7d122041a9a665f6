//! The plugin `MutatingAdmissionPolicy`.

use opkit_apimachinery::managedfields;
use opkit_apimachinery::patch;
use opkit_cel::{Object, Value as CelValue};
use serde_json::{Value, json};

use super::definition::{Binding, Mutation, Policy};
use super::evaluation::{Evaluation, Inputs};
use super::params;
use crate::admission::conditions::Matched;
use crate::admission::reinvocation::Reinvocation;
use crate::admission::request::{Presented, convert_back};
use crate::admission::{Attributes, Operation};
use crate::object;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// Evaluates the mutating policies for a request, and applies their mutations to the object.
pub(crate) async fn mutate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
    reinvocation: &mut Reinvocation,
) -> ApiResult<()> {
    let policies = registry.policies.mutating.get(&registry.store);
    if policies.is_empty() || attributes.operation == Operation::Delete {
        return Ok(());
    }
    reinvocation.begin(object);
    let mut errors = Vec::new();
    // As in Kubernetes, the policies and parameters are selected before the first mutation.
    for selected in select(registry, attributes, object, &policies, &mut errors) {
        let (policy, binding) = (selected.policy, selected.binding);
        let is_skipped = !reinvocation.is_due(&selected.key());
        let kind = selected.kind.clone();
        let presented = Presented::new(registry, attributes, kind, Some(object)).await?;
        let matched = policy
            .conditions
            .evaluate_with(registry, &presented, Some(&selected.params));
        match matched {
            Matched::Yes if is_skipped => continue,
            Matched::Yes => {}
            Matched::No => continue,
            Matched::Error(message) => {
                errors.extend(failed(policy, Some(binding), &message));
                continue;
            }
        }
        let before = presented.object.clone();
        let mutated = apply_all(
            registry,
            policy,
            binding,
            &selected.params,
            presented,
            &mut errors,
        );
        if mutated.object != before {
            let kind = mutated.kind.clone();
            *object = convert_back(registry, attributes, &kind, mutated.object).await?;
            registry.default_mutated(attributes, object)?;
            reinvocation.changed();
        }
        if policy.is_reinvoked {
            reinvocation.invoked(selected.key());
        }
    }
    reinvocation.end(object);
    match errors.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            let mut error = attributes.forbid("admission request denied by policy");
            error = error.with_message(first.clone());
            if errors
                .iter()
                .any(|error| !error.contains("failed to configure"))
            {
                error = error.with_reason(403, "Invalid");
            }
            for message in &errors {
                error.add_cause(message);
            }
            Err(error)
        }
    }
}

/// A policy with a binding and a parameter that select a request.
struct Selected<'a> {
    policy: &'a Policy,
    binding: &'a Binding,
    params: Value,
    kind: std::sync::Arc<crate::kinds::Kind>,
}

impl Selected<'_> {
    /// Returns a name of the policy, the binding and the parameter that no others have.
    fn key(&self) -> String {
        let (namespace, name) = (object::namespace(&self.params), object::name(&self.params));
        format!(
            "{}/{}/{namespace}/{name}",
            self.policy.name, self.binding.name
        )
    }
}

fn select<'a>(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &Value,
    policies: &'a [Policy],
    errors: &mut Vec<String>,
) -> Vec<Selected<'a>> {
    let mut selected = Vec::new();
    for policy in policies {
        let kind = match &policy.matching {
            Ok(matching) => matching.select(registry, attributes, Some(object)),
            Err(error) => Err(ApiError::internal(error.as_str())),
        };
        let kind = match kind {
            Ok(Some(kind)) => kind,
            Ok(None) => continue,
            Err(error) => {
                errors.extend(misconfigured(policy, None, &error.message()));
                continue;
            }
        };
        for binding in &policy.bindings {
            let matches = match &binding.matching {
                Some(Ok(matching)) => matching.select(registry, attributes, Some(object)),
                Some(Err(error)) => Err(ApiError::internal(error.as_str())),
                None => Ok(Some(kind.clone())),
            };
            let found = match matches {
                Ok(Some(_)) => params::collect(registry, attributes, policy, binding),
                Ok(None) => continue,
                Err(error) => Err(error.message()),
            };
            match found {
                Ok(all) => selected.extend(all.into_iter().map(|params| Selected {
                    policy,
                    binding,
                    params,
                    kind: kind.clone(),
                })),
                Err(error) => errors.extend(misconfigured(policy, Some(binding), &error)),
            }
        }
    }
    selected
}

/// Returns the error of a policy or binding that cannot be used, unless that is ignored.
fn misconfigured(policy: &Policy, binding: Option<&Binding>, error: &str) -> Option<String> {
    let is_of_policy = binding.is_none() || error.starts_with("failed to find resource");
    let what = if is_of_policy { "policy" } else { "binding" };
    let message = format!("failed to configure {what}: {error}");
    failed(policy, binding.filter(|_| !is_of_policy), &message)
}

/// Returns the error of a policy, unless that is ignored.
fn failed(policy: &Policy, binding: Option<&Binding>, message: &str) -> Option<String> {
    let name = &policy.name;
    (!policy.is_ignored_on_failure).then(|| match binding {
        Some(binding) => format!(
            "policy '{name}' with binding '{}' denied request: {message}",
            binding.name
        ),
        None => format!("policy {name:?} denied request: {message}"),
    })
}

/// Applies the mutations of a policy one after the other.
fn apply_all<'a>(
    registry: &Registry,
    policy: &Policy,
    binding: &Binding,
    params: &Value,
    mut presented: Presented<'a>,
    errors: &mut Vec<String>,
) -> Presented<'a> {
    for mutation in &policy.mutations {
        let mutated = {
            let inputs = Inputs::new(registry, &presented, params);
            let mut evaluation = Evaluation::new(policy, &inputs);
            apply(registry, &presented, mutation, &mut evaluation)
        };
        match mutated {
            Ok(object) => presented.object = object,
            Err(message) => errors.extend(failed(policy, Some(binding), &message)),
        }
    }
    presented
}

/// Returns the object after one mutation.
fn apply<'a>(
    registry: &Registry,
    presented: &Presented<'_>,
    mutation: &'a Mutation,
    evaluation: &mut Evaluation<'a>,
) -> Result<Value, String> {
    match mutation {
        Mutation::JsonPatch(expression) => {
            let value = evaluation.evaluate(expression)?;
            let operations = operations(&value)?;
            let mut object = presented.object.clone();
            match patch::json_patch(&mut object, &operations) {
                Ok(()) => Ok(object),
                // A failed test means that the patch is not for this object.
                Err(error) if error.to_string().ends_with("test failed") => {
                    Ok(presented.object.clone())
                }
                Err(error) => Err(format!("JSON Patch: {error}")),
            }
        }
        Mutation::ApplyConfiguration(expression) => {
            let value = evaluation.evaluate(expression)?;
            let CelValue::Object(Object::Literal(literal)) = &value else {
                return Err("unsupported return type from ApplyConfiguration expression".to_owned());
            };
            literal
                .check_types()
                .map_err(|error| format!("type mismatch: {error}"))?;
            let mut configuration = value.to_json().ok_or("invalid return type")?;
            for field in ["apiVersion", "kind"] {
                let found = object::at(&presented.object, &[field]).clone();
                object::set_field(&mut configuration, field, found);
            }
            merge(registry, presented, &configuration)
        }
    }
}

/// Returns the operations of a JSON patch that an expression has computed.
fn operations(value: &CelValue<'_>) -> Result<Value, String> {
    let CelValue::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::new();
    for item in list.items() {
        let CelValue::Object(Object::Literal(literal)) = &item else {
            return Err(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
                    .to_owned(),
            );
        };
        let text = |name: &str| {
            let value = literal.field(name).and_then(CelValue::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut operation = json!({"op": text("op"), "path": text("path")});
        if !text("from").is_empty() {
            object::set_field(&mut operation, "from", json!(text("from")));
        }
        if let Some(value) = literal.field("value") {
            if let CelValue::Object(Object::Literal(object)) = value {
                object
                    .check_types()
                    .map_err(|error| format!("type mismatch: {error}"))?;
            }
            let value = value.to_json().ok_or(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON",
            )?;
            object::set_field(&mut operation, "value", value);
        }
        operations.push(operation);
    }
    Ok(Value::Array(operations))
}

/// Merges a configuration into the object by the lists and maps of its schema.
fn merge(
    registry: &Registry,
    presented: &Presented<'_>,
    configuration: &Value,
) -> Result<Value, String> {
    let schema = registry.schemas.of(&presented.kind);
    let schema = schema.map_err(|error| error.message())?;
    let typed = registry.schemas.typed(&schema);
    let merged = managedfields::merge(&presented.object, configuration, &typed);
    let merged = merged.map_err(|error| {
        format!("error applying patch: failed to convert patch object to typed object: {error}")
    })?;
    let atomics = managedfields::atomic_fields(configuration, &typed);
    if !atomics.is_empty() {
        return Err(format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps \
             or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(merged)
}
