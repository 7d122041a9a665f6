//! One rule, and its compiled form.

use std::sync::Arc;

use opkit_apimachinery::schema::Schema;
use serde_json::{Value as Json, json};

use super::decl::DeclType;
use super::field_path::field_path;
use crate::environment::Environment;
use crate::error::CompileError;
use crate::program::Program;
use crate::types::Type;

/// An entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default)]
pub(super) struct Rule {
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) message_expression: String,
    pub(super) reason: Option<String>,
    pub(super) field_path: String,
    pub(super) optional_old_self: Option<bool>,
}

impl Rule {
    pub(super) fn parse(document: &Json) -> Self {
        let text = |name: &str| {
            let value = document.get(name).and_then(Json::as_str);
            value.unwrap_or_default().to_owned()
        };
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: document
                .get("reason")
                .and_then(Json::as_str)
                .map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: document.get("optionalOldSelf").and_then(Json::as_bool),
        }
    }

    /// Returns the rule as Kubernetes prints it in errors: JSON with the fields in the order of
    /// their declaration, and with the escapes of Go.
    pub(super) fn shown(&self) -> String {
        let fields = [
            ("Rule", json!(self.rule)),
            ("Message", json!(self.message)),
            ("MessageExpression", json!(self.message_expression)),
            ("Reason", json!(self.reason)),
            ("FieldPath", json!(self.field_path)),
            ("OptionalOldSelf", json!(self.optional_old_self)),
        ];
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        let mut shown = String::new();
        for c in format!("{{{}}}", fields.join(",")).chars() {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    shown.push_str(&format!("\\u{:04x}", c as u32));
                }
                c => shown.push(c),
            }
        }
        shown
    }

    /// Returns the message, or the rule if it has no message.
    pub(super) fn name(&self) -> &str {
        match self.message.is_empty() {
            true => self.rule.trim(),
            false => self.message.trim(),
        }
    }
}

/// A compiled rule.
#[derive(Debug, Default)]
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    /// Why the rule cannot be compiled.
    pub(super) error: Option<String>,
    pub(super) program: Option<Program>,
    pub(super) uses_old_self: bool,
    pub(super) message: Option<Program>,
    /// Why the expression of the message cannot be compiled.
    pub(super) message_error: Option<String>,
    /// Path of the field that the rule concerns, from the level of the rule.
    pub(super) path: String,
}

/// The types of one level of a schema.
pub(super) struct Level<'s> {
    pub(super) schema: &'s Schema,
    /// Schema of the values, with the fields of a resource.
    pub(super) values: Arc<Schema>,
    pub(super) declared: Arc<DeclType>,
}

impl Level<'_> {
    pub(super) fn compile(&self, rules: &[Json]) -> Vec<CompiledRule> {
        rules
            .iter()
            .map(|rule| self.compile_one(Rule::parse(rule)))
            .collect()
    }

    fn compile_one(&self, rule: Rule) -> CompiledRule {
        let mut compiled = CompiledRule {
            rule,
            ..CompiledRule::default()
        };
        let rule = &compiled.rule;
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let is_optional = rule.optional_old_self == Some(true);
        let environment =
            Environment::typed(self.declared.clone(), self.values.clone(), is_optional);
        match build(&environment, &rule.rule, Expression::Rule) {
            Ok(program) => {
                compiled.uses_old_self = program.uses("oldSelf");
                compiled.program = Some(program);
            }
            Err((message, uses_old_self)) => {
                compiled.error = Some(message);
                compiled.uses_old_self = uses_old_self;
                return compiled;
            }
        }
        if !rule.message_expression.is_empty() {
            match build(&environment, &rule.message_expression, Expression::Message) {
                Ok(program) => compiled.message = Some(program),
                Err((message, _)) => {
                    compiled.message_error = Some(message);
                    return compiled;
                }
            }
        }
        if !rule.field_path.is_empty() {
            compiled.path = field_path(&rule.field_path, self.schema).unwrap_or_default();
        }
        compiled
    }
}

/// Which expression of a rule is compiled.
#[derive(Clone, Copy, PartialEq)]
enum Expression {
    Rule,
    Message,
}

/// Compiles an expression. An error has Kubernetes' text, and whether the expression is known to
/// use `oldSelf`.
fn build(
    environment: &Environment,
    source: &str,
    kind: Expression,
) -> Result<Program, (String, bool)> {
    let prefix = match kind {
        Expression::Rule => "",
        Expression::Message => "messageExpression ",
    };
    let program = environment.compile(source).map_err(|error| match error {
        CompileError::Invalid(text) => (format!("{prefix}compilation failed: {text}"), false),
        CompileError::Constant(text) => {
            let what = match kind {
                Expression::Rule => "program ",
                Expression::Message => prefix,
            };
            let uses_old_self = environment.references(source, "oldSelf");
            (format!("{what}instantiation failed: {text}"), uses_old_self)
        }
    })?;
    match (kind, program.result_type()) {
        (Expression::Rule, Type::Bool) | (Expression::Message, Type::String) => Ok(program),
        (Expression::Rule, _) => Err(("cel expression must evaluate to a bool".to_owned(), false)),
        (Expression::Message, _) => Err((
            "messageExpression must evaluate to a string".to_owned(),
            false,
        )),
    }
}
