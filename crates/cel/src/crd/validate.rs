//! Evaluation of the rules of a CRD for an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use opkit_apimachinery::schema::{AdditionalProperties, Schema};
use opkit_apimachinery::structural::{FieldError, FieldErrorKind};
use serde_json::{Value as Json, json};

use super::correlate::{Correlation, Ratchet, correlated_item};
use super::decl::DeclType;
use super::rule::{CompiledRule, Level};
use super::value_schema;
use crate::eval::Variables;
use crate::program::{Budget, PER_CALL_LIMIT, Program, text_of};
use crate::value::{Fault, Value, from_json};

/// Maximum length of an evaluated message in bytes.
const MESSAGE_MAX: usize = 5 * 1024;
const OVER_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The compiled rules of a schema. They can be shared between threads.
///
/// # Examples
/// ```
/// use opkit_apimachinery::schema::Schema;
/// use opkit_cel::{Budget, RUNTIME_COST_BUDGET, Rules};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"size": {
///         "type": "integer",
///         "x-kubernetes-validations": [
///             {"rule": "self >= oldSelf", "message": "must not shrink"},
///         ],
///     }},
/// }))?;
/// let rules = Rules::new(&schema);
/// let mut budget = Budget::new(RUNTIME_COST_BUDGET);
/// let outcome = rules.validate(&json!({"size": 1}), Some(&json!({"size": 2})), &mut budget);
/// assert_eq!(outcome.errors[0].to_string(), "size: Invalid value: 1: must not shrink");
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct Rules {
    schema: Arc<Schema>,
    root: Option<Validator>,
}

/// Result of the rules of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleOutcome {
    /// Errors, for which Kubernetes refuses the object.
    pub errors: Vec<FieldError>,
    /// Errors of values that the update did not change. Kubernetes sends them as warnings.
    pub warnings: Vec<FieldError>,
}

impl Rules {
    /// Compiles the rules of a schema. A rule that does not compile fails for each object.
    pub fn new(schema: &Schema) -> Self {
        let declared = DeclType::of(schema, true).map(Arc::new);
        Self {
            schema: Arc::new(schema.clone()),
            root: Validator::build(schema, schema, true, declared),
        }
    }

    /// Compiles the rules of a part of a schema, which need not be the schema of a resource.
    pub fn of_part(schema: &Schema) -> Self {
        let is_resource = schema.embedded_resource;
        let declared = DeclType::of(schema, is_resource).map(Arc::new);
        Self {
            schema: Arc::new(schema.clone()),
            root: Validator::build(schema, schema, is_resource, declared),
        }
    }

    /// Evaluates the rules for the default value of the schema: for an update that keeps the value
    /// and, if that is valid, for a new value. The paths of the errors begin with `path`.
    pub fn validate_default(
        &self,
        path: &str,
        value: &Json,
        budget: &mut Budget,
    ) -> Vec<FieldError> {
        let mut run = Run {
            outcome: RuleOutcome::default(),
            budget,
        };
        let Some(root) = &self.root else {
            return Vec::new();
        };
        for old in [Some(value), None] {
            let ended = root.validate(path, value, old, &Ratchet::default(), &mut run);
            if ended.is_err() || !run.outcome.errors.is_empty() {
                break;
            }
        }
        run.outcome.errors
    }

    /// Reports whether the schema has no rules.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Evaluates the rules for an object, and spends their cost from the budget. `old` is the
    /// object before an update.
    pub fn validate(&self, new: &Json, old: Option<&Json>, budget: &mut Budget) -> RuleOutcome {
        let mut run = Run {
            outcome: RuleOutcome::default(),
            budget,
        };
        let old = old.filter(|old| !old.is_null());
        let ratchet = match old {
            Some(old) => Ratchet::new(Correlation::new(new, old, &self.schema)),
            None => Ratchet::default(),
        };
        if let Some(root) = &self.root
            && root.validate("", new, old, &ratchet, &mut run).is_err()
        {
            run.budget.exhaust();
        }
        run.outcome
    }
}

/// The rules of one level and of the levels below it.
#[derive(Debug)]
struct Validator {
    rules: Vec<CompiledRule>,
    /// Schema of the values, with the fields of a resource.
    values: Arc<Schema>,
    /// Schema as written.
    schema: Arc<Schema>,
    uses_old_self: bool,
    /// Whether the level has rules, but no type.
    is_untyped: bool,
    all_of: Vec<Self>,
    items: Option<Box<Self>>,
    additional: Option<Box<Self>>,
    properties: BTreeMap<String, Self>,
}

/// Signals that no further rules are run.
struct Stop;

struct Run<'b> {
    outcome: RuleOutcome,
    budget: &'b mut Budget,
}

impl Validator {
    /// Builds the validator of a level, or returns `None` if there are no rules. The rules are
    /// those of `rules`, which is `node` or an element of its `allOf`.
    fn build(
        rules: &Schema,
        node: &Schema,
        is_resource: bool,
        declared: Option<Arc<DeclType>>,
    ) -> Option<Self> {
        let child = |rules: &Schema, node: &Schema| {
            let declared = DeclType::of(node, node.embedded_resource).map(Arc::new);
            Self::build(rules, node, node.embedded_resource, declared)
        };
        let items = match (&rules.items, &node.items) {
            (Some(rules), Some(node)) => child(rules, node).map(Box::new),
            _ => None,
        };
        let additional = match (&rules.additional_properties, &node.additional_properties) {
            (
                Some(AdditionalProperties::Schema(rules)),
                Some(AdditionalProperties::Schema(node)),
            ) => child(rules, node).map(Box::new),
            _ => None,
        };
        let mut properties = BTreeMap::new();
        for (name, rules) in &rules.properties {
            // Expressions cannot see a field without a type, so its rules are not run.
            let node = node.properties.get(name).filter(|_| declared.is_some());
            if let Some(node) = node
                && DeclType::of(node, node.embedded_resource).is_some()
                && let Some(found) = child(rules, node)
            {
                properties.insert(name.clone(), found);
            }
        }
        let all_of: Vec<Self> = rules
            .all_of
            .iter()
            .filter_map(|rules| Self::build(rules, node, is_resource, declared.clone()))
            .collect();
        let values = Arc::new(value_schema(node, is_resource));
        let is_untyped = declared.is_none() && !rules.validations.is_empty();
        let compiled = match declared {
            Some(declared) => Level {
                schema: node,
                values: values.clone(),
                declared,
            }
            .compile(&rules.validations),
            None => Vec::new(),
        };
        let is_empty = compiled.is_empty()
            && !is_untyped
            && items.is_none()
            && additional.is_none()
            && properties.is_empty()
            && all_of.is_empty();
        (!is_empty).then(|| Self {
            uses_old_self: compiled.iter().any(|rule| rule.uses_old_self),
            rules: compiled,
            values,
            schema: Arc::new(node.clone()),
            is_untyped,
            all_of,
            items,
            additional,
            properties,
        })
    }

    fn validate<'a>(
        &'a self,
        path: &str,
        new: &'a Json,
        old: Option<&'a Json>,
        ratchet: &Ratchet<'a>,
        run: &mut Run<'_>,
    ) -> Result<(), Stop> {
        if new.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        self.run_rules(path, new, old, ratchet, run)?;
        for rules in &self.all_of {
            rules.validate(path, new, old, &ratchet.for_all_of(), run)?;
        }
        match new {
            Json::Array(items) => {
                let Some(validator) = &self.items else {
                    return Ok(());
                };
                let old_items = old.and_then(Json::as_array).map(Vec::as_slice);
                for (index, item) in items.iter().enumerate() {
                    let old = correlated_item(&self.schema, old_items.unwrap_or_default(), item);
                    let path = format!("{path}[{index}]");
                    validator.validate(&path, item, old, &ratchet.index(index), run)?;
                }
            }
            Json::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(validator) = &self.additional {
                        let path = format!("{path}[{name}]");
                        validator.validate(&path, value, old, &ratchet.key(name), run)?;
                    }
                    if let Some(validator) = self.properties.get(name) {
                        let path = child(path, name);
                        validator.validate(&path, value, old, &ratchet.key(name), run)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn run_rules<'a>(
        &'a self,
        path: &str,
        new: &'a Json,
        old: Option<&'a Json>,
        ratchet: &Ratchet<'a>,
        run: &mut Run<'_>,
    ) -> Result<(), Stop> {
        if self.is_untyped {
            let message = "rule compiler initialization error: failed to convert to declType for \
                CEL validation rules";
            run.outcome.errors.push(self.failed(path, message));
            return Ok(());
        }
        if self.rules.is_empty() {
            return Ok(());
        }
        if run.budget.remaining() == 0 {
            run.outcome.errors.push(self.failed(path, OVER_BUDGET));
            return Err(Stop);
        }
        let (plain, optional) = self.variables(new, old);
        for rule in &self.rules {
            let is_optional = rule.rule.optional_old_self == Some(true);
            let is_skipped = rule.uses_old_self && old.is_none() && !is_optional;
            if let Some(error) = &rule.error {
                let message = format!("rule compile error: {error}");
                run.outcome.errors.push(self.failed(path, &message));
                continue;
            }
            let Some(program) = rule.program.as_ref().filter(|_| !is_skipped) else {
                continue;
            };
            let variables = if is_optional { &optional } else { &plain };
            if self.run_rule(path, rule, program, variables, run)? {
                continue;
            }
            let message = self.message(path, rule, &plain, ratchet, run)?;
            let error = self.violation(path, rule, new, &message);
            add(rule, ratchet, error, run);
        }
        Ok(())
    }

    /// Evaluates a rule. Returns `false` if the object violates it.
    fn run_rule<'a>(
        &self,
        path: &str,
        rule: &CompiledRule,
        program: &'a Program,
        variables: &Variables<'a>,
        run: &mut Run<'_>,
    ) -> Result<bool, Stop> {
        let evaluated = program.run(variables, PER_CALL_LIMIT);
        if !run.budget.spend(evaluated.cost) {
            run.outcome.errors.push(self.failed(path, OVER_BUDGET));
            return Err(Stop);
        }
        let name = rule.rule.name();
        let message = match evaluated.outcome {
            Ok(value) => return Ok(value.as_bool() == Some(true)),
            Err(Fault::Budget) => {
                let message = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation \
                     rules will be run due to call cost exceeds limit for rule: {name}"
                );
                run.outcome.errors.push(self.failed(path, &message));
                return Err(Stop);
            }
            Err(Fault::Error(cause)) if cause.starts_with("no such overload") => format!(
                "'{cause}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {name}"
            ),
            Err(Fault::Error(cause)) => format!("{cause} evaluating rule: {name}"),
        };
        run.outcome.errors.push(self.failed(path, &message));
        Ok(true)
    }

    /// Returns the message of a violated rule.
    fn message<'a>(
        &self,
        path: &str,
        rule: &'a CompiledRule,
        variables: &Variables<'a>,
        ratchet: &Ratchet<'_>,
        run: &mut Run<'_>,
    ) -> Result<String, Stop> {
        let default = match rule.rule.message.is_empty() {
            true => format!("failed rule: {}", rule.rule.name()),
            false => rule.rule.message.trim().to_owned(),
        };
        let Some(program) = &rule.message else {
            return Ok(default);
        };
        let evaluated = program.run(variables, PER_CALL_LIMIT);
        let refused = if !run.budget.spend(evaluated.cost) {
            Some(
                "messageExpression evaluation failed due to running out of cost budget, no \
                 further validation rules will be run"
                    .to_owned(),
            )
        } else if matches!(evaluated.outcome, Err(Fault::Budget)) {
            let expression = crate::library::format_string::quote(&rule.rule.message_expression);
            Some(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {expression}"
            ))
        } else {
            None
        };
        if let Some(refused) = refused {
            let path = rule_path(path, rule);
            add(rule, ratchet, self.failed(&path, &refused), run);
            return Err(Stop);
        }
        let text = text_of(evaluated.outcome)
            .ok()
            .flatten()
            .unwrap_or_default();
        let text = text.trim();
        let is_usable = !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n');
        Ok(match is_usable {
            true => text.to_owned(),
            false => default,
        })
    }

    /// Returns the variables of rules, and those of rules with an optional `oldSelf`.
    fn variables<'a>(
        &'a self,
        new: &'a Json,
        old: Option<&'a Json>,
    ) -> (Variables<'a>, Variables<'a>) {
        let mut plain = Variables::new();
        plain.insert("self".to_owned(), from_json(new, Some(&self.values)));
        let mut optional = plain.clone();
        if !self.uses_old_self {
            return (plain, optional);
        }
        let old = old.map(|old| from_json(old, Some(&self.values)));
        let wrapped = match &old {
            Some(Ok(value)) => Ok(Value::optional(Some(value.clone()))),
            Some(Err(fault)) => Err(fault.clone()),
            None => Ok(Value::Optional(None)),
        };
        optional.insert("oldSelf".to_owned(), wrapped);
        if let Some(old) = old {
            plain.insert("oldSelf".to_owned(), old);
        }
        (plain, optional)
    }

    /// Returns the error of a rule that has no result.
    fn failed(&self, path: &str, message: &str) -> FieldError {
        let type_name = self.schema.type_.map_or("", |found| found.as_str());
        FieldError::invalid(shown(path), &json!(type_name), message)
    }

    fn violation(
        &self,
        path: &str,
        rule: &CompiledRule,
        value: &Json,
        message: &str,
    ) -> FieldError {
        let path = rule_path(path, rule);
        let field = shown(&path);
        let is_scalar = !matches!(
            self.schema.type_.map(|found| found.as_str()),
            Some("object" | "array")
        );
        let mut error = match rule.rule.reason.as_deref() {
            Some("FieldValueForbidden") => return FieldError::forbidden(field, message),
            Some("FieldValueRequired") => return FieldError::required(field, message),
            Some("FieldValueDuplicate") if is_scalar => return FieldError::duplicate(field, value),
            _ if is_scalar => return FieldError::invalid(field, value, message),
            Some("FieldValueDuplicate") => FieldError::duplicate(field, value),
            _ => FieldError::invalid(field, value, message),
        };
        // The values of objects and lists are not printed.
        error.detail = match error.kind {
            FieldErrorKind::Duplicate => "Duplicate value".to_owned(),
            _ if message.is_empty() => "Invalid value".to_owned(),
            _ => format!("Invalid value: {message}"),
        };
        error
    }
}

/// Adds the error of a rule, or a warning if the value did not change.
fn add(rule: &CompiledRule, ratchet: &Ratchet<'_>, error: FieldError, run: &mut Run<'_>) {
    match !rule.uses_old_self && ratchet.is_unchanged() {
        true => run.outcome.warnings.push(error),
        false => run.outcome.errors.push(error),
    }
}

fn rule_path(path: &str, rule: &CompiledRule) -> String {
    match rule.path.is_empty() {
        true => path.to_owned(),
        false => child(path, &rule.path),
    }
}

fn child(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

/// Returns a path as Kubernetes prints it.
fn shown(path: &str) -> String {
    match path.is_empty() {
        true => "<nil>".to_owned(),
        false => path.to_owned(),
    }
}
