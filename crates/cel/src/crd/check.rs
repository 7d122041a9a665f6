//! Errors of rules when a CRD is created.

use std::sync::Arc;

use opkit_apimachinery::schema::{AdditionalProperties, ListType, Schema, SchemaType};
use opkit_apimachinery::structural::{FieldError, FieldErrorKind};
use serde_json::{Value as Json, json};

use super::decl::DeclType;
use super::field_path::field_path;
use super::rule::{CompiledRule, Level, Rule};
use super::value_schema;

/// Maximum estimated cost of one rule, with the number of its evaluations.
const RULE_COST_MAX: u64 = 10_000_000;
/// Maximum estimated cost of all rules of a CRD.
const CRD_COST_MAX: u64 = 100_000_000;
/// Number of rules that an error of the total cost names.
const EXPENSIVE_MAX: usize = 4;
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Returns the errors of the rules of a schema, in Kubernetes' words.
///
/// `path` is the field of the CRD that contains the schema, such as
/// `spec.validation.openAPIV3Schema`. The schema must be structural: this function reports errors
/// of rules only.
///
/// # Examples
/// ```
/// use opkit_apimachinery::schema::Schema;
/// use opkit_cel::check_rules;
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"replicas": {"type": "integer"}},
///     "x-kubernetes-validations": [{"rule": "self.replicas > 'a'"}],
/// }))?;
/// let errors = check_rules(&schema, "spec.validation.openAPIV3Schema");
/// assert_eq!(
///     errors[0].field,
///     "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule",
/// );
/// assert!(errors[0].detail.contains("found no matching overload for '_>_'"));
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn check_rules(schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut all = malformed_rules(schema, path);
    let is_invalid = |level: &str| all.iter().any(|error| error.field.starts_with(level));
    let options = RuleOptions {
        is_invalid: &is_invalid,
        limits_rules: true,
    };
    let errors = compile_rules(schema, path, &options);
    all.extend(errors);
    all
}

/// Options of [`compile_rules`].
pub struct RuleOptions<'a> {
    /// Reports whether the part of the schema at this path, or a part below it, has errors. Its
    /// rules are then not compiled.
    pub is_invalid: &'a dyn Fn(&str) -> bool,
    /// Whether the estimated cost of each single rule is limited. Kubernetes does not limit the
    /// rules of a schema that an update does not change.
    pub limits_rules: bool,
}

impl std::fmt::Debug for RuleOptions<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RuleOptions")
            .field("limits_rules", &self.limits_rules)
            .finish_non_exhaustive()
    }
}

/// Returns the errors of the rules of a schema and of the schemas in it that do not depend on the
/// expressions, such as an empty rule.
fn malformed_rules(schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
        errors.extend(malformed_rules(
            values,
            &format!("{path}.additionalProperties"),
        ));
    }
    for (name, property) in &schema.properties {
        errors.extend(malformed_rules(
            property,
            &format!("{path}.properties[{name}]"),
        ));
    }
    if let Some(items) = &schema.items {
        errors.extend(malformed_rules(items, &format!("{path}.items")));
    }
    errors.extend(malformed_level(&schema.validations, Some(schema), path));
    errors
}

/// Returns the errors of the `rules` of one level of a schema that do not depend on the
/// expressions. Without the parsed schema of the level, field paths are not checked.
pub fn malformed_level(rules: &[Json], schema: Option<&Schema>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        malformed(&Rule::parse(rule), &path, schema, &mut errors);
    }
    errors
}

/// Compiles the rules of a schema, and returns the errors of their expressions and costs.
pub fn compile_rules(schema: &Schema, path: &str, options: &RuleOptions<'_>) -> Vec<FieldError> {
    let mut total = TotalCost::default();
    let context = Context {
        path: path.to_owned(),
        cardinality: Some(1),
        is_root: true,
        uncorrelatable: None,
        options,
    };
    let mut all = Vec::new();
    check(schema, &context, &mut total, &mut all);
    if total.sum > CRD_COST_MAX {
        let message = "contributed to estimated rule cost total exceeding cost limit for entire \
            OpenAPIv3 schema";
        for (path, _) in total.expensive {
            all.push(FieldError::forbidden(path, message));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let message = cost_message(name, total.sum, CRD_COST_MAX);
        all.push(FieldError::forbidden(path, message));
    }
    all
}

/// Estimated cost of all rules.
#[derive(Default)]
struct TotalCost {
    sum: u64,
    /// The most expensive rules.
    expensive: Vec<(String, u64)>,
}

impl TotalCost {
    fn observe(&mut self, path: String, cost: u64) {
        self.sum = self.sum.saturating_add(cost);
        if cost < CRD_COST_MAX / 100 {
            return;
        }
        self.expensive.push((path, cost));
        self.expensive
            .sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.expensive.truncate(EXPENSIVE_MAX);
    }
}

/// Position of a level in the schema.
struct Context<'o> {
    path: String,
    /// Maximum number of values of this level in one object. `None` if it is not limited.
    cardinality: Option<u64>,
    is_root: bool,
    /// Path of the list around this level whose items cannot be correlated with old items.
    uncorrelatable: Option<String>,
    options: &'o RuleOptions<'o>,
}

impl Context<'_> {
    fn child(&self, schema: &Schema, part: &str) -> Self {
        let elements = match schema.type_ {
            Some(SchemaType::Object) if schema.additional_properties.is_some() => {
                schema.max_properties
            }
            Some(SchemaType::Array) => schema.max_items,
            _ => Some(1),
        };
        Self {
            path: format!("{}.{part}", self.path),
            cardinality: self
                .cardinality
                .zip(elements)
                .map(|(own, elements)| own.saturating_mul(elements)),
            is_root: false,
            uncorrelatable: self.uncorrelatable.clone(),
            options: self.options,
        }
    }
}

fn check(
    schema: &Schema,
    context: &Context<'_>,
    total: &mut TotalCost,
    errors: &mut Vec<FieldError>,
) {
    if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
        let child = context.child(schema, "additionalProperties");
        check(values, &child, total, errors);
    }
    for (name, property) in &schema.properties {
        let child = context.child(schema, &format!("properties[{name}]"));
        check(property, &child, total, errors);
    }
    if let Some(items) = &schema.items {
        let mut child = context.child(schema, "items");
        if schema.list_type != Some(ListType::Map) && child.uncorrelatable.is_none() {
            child.uncorrelatable = Some(context.path.clone());
        }
        check(items, &child, total, errors);
    }
    let rules = &schema.validations;
    if !rules.is_empty() && !(context.options.is_invalid)(&context.path) {
        check_level(schema, rules, context, total, errors);
    }
}

/// Adds the errors of a rule that do not depend on its expressions.
fn malformed(rule: &Rule, path: &str, schema: Option<&Schema>, errors: &mut Vec<FieldError>) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let message = rule.message.trim();
    let at = |field: &str| format!("{path}.{field}");
    if rule.rule.trim().is_empty() {
        errors.push(FieldError::required(at("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(
            at("message"),
            &json!(rule.message),
            detail,
        ));
    } else if has_lines(message) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(
            at("message"),
            &json!(rule.message),
            detail,
        ));
    } else if has_lines(rule.rule.trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(at("message"), detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(at("messageExpression"), detail));
    }
    if let Some(reason) = &rule.reason
        && !REASONS.contains(&reason.as_str())
    {
        let field = at("reason");
        errors.push(FieldError::not_supported(field, &json!(reason), &REASONS));
    }
    if rule.field_path.is_empty() {
        return;
    }
    let value = json!(rule.field_path);
    let mut invalid = |detail: &str| {
        errors.push(FieldError::invalid(at("fieldPath"), &value, detail));
    };
    if rule.field_path.trim().is_empty() {
        invalid("must be non-empty if specified");
    }
    if has_lines(&rule.field_path) {
        invalid("must not contain line breaks");
    }
    if schema.is_some_and(|schema| field_path(&rule.field_path, schema).is_none()) {
        invalid("must be a valid path");
    }
}

/// Compiles the rules of one level, and adds their errors.
fn check_level(
    schema: &Schema,
    rules: &[Json],
    context: &Context<'_>,
    total: &mut TotalCost,
    errors: &mut Vec<FieldError>,
) {
    let is_resource = context.is_root || schema.embedded_resource;
    let values = Arc::new(value_schema(schema, is_resource));
    let Some(declared) = DeclType::of(&values, false) else {
        let mut error =
            FieldError::forbidden(format!("{}.x-kubernetes-validations", context.path), "");
        error.kind = FieldErrorKind::Internal;
        error.detail = "Internal error: internal error: failed to construct type information for \
            x-kubernetes-validations rules: unable to convert structural schema to CEL declarations"
            .to_owned();
        errors.push(error);
        return;
    };
    let cardinality = context.cardinality.unwrap_or(declared.cardinality());
    let level = Level {
        schema,
        values,
        declared: Arc::new(declared),
    };
    for (index, compiled) in level.compile(rules).iter().enumerate() {
        let path = format!("{}.x-kubernetes-validations[{index}]", context.path);
        rule_errors(compiled, &path, cardinality, context, total, errors);
    }
}

fn rule_errors(
    compiled: &CompiledRule,
    path: &str,
    cardinality: u64,
    context: &Context<'_>,
    total: &mut TotalCost,
    errors: &mut Vec<FieldError>,
) {
    let rule = &compiled.rule;
    let at = |field: &str| format!("{path}.{field}");
    let per_call = compiled
        .program
        .as_ref()
        .map_or(0, |program| program.estimated_cost());
    let cost = per_call.saturating_mul(cardinality);
    if cost > RULE_COST_MAX && context.options.limits_rules {
        let message = cost_message("estimated rule cost", cost, RULE_COST_MAX);
        errors.push(FieldError::forbidden(at("rule"), message));
    }
    total.observe(at("rule"), cost);
    if let Some(error) = &compiled.error {
        errors.push(invalid_rule(at("rule"), rule, error));
    }
    if let Some(error) = &compiled.message_error {
        errors.push(invalid_rule(at("messageExpression"), rule, error));
    } else if let Some(message) = &compiled.message {
        let cost = message.estimated_cost();
        if cost > RULE_COST_MAX && context.options.limits_rules {
            let text = cost_message("estimated messageExpression cost", cost, RULE_COST_MAX);
            errors.push(FieldError::forbidden(at("messageExpression"), text));
        }
        total.observe(at("messageExpression"), cost);
    }
    if compiled.uses_old_self {
        if let Some(list) = &context.uncorrelatable {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            );
            errors.push(FieldError::invalid(at("rule"), &json!(rule.rule), detail));
        }
    } else if let Some(optional) = rule.optional_old_self {
        let detail = "may not be set if oldSelf is not used in rule";
        let field = at("optionalOldSelf");
        errors.push(FieldError::invalid(field, &json!(optional), detail));
    }
}

/// Returns the error of an expression. Its value is the whole rule.
fn invalid_rule(field: String, rule: &Rule, message: &str) -> FieldError {
    let mut error = FieldError::invalid(field, &Json::Null, message);
    error.detail = format!("Invalid value: {}: {message}", rule.shown());
    error
}

fn cost_message(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
