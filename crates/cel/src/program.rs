//! Compiled expressions, and the values and the budget with which they run.

use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::schema::Schema;
use opkit_syntax::cel::{Source, parse, stack};
use serde_json::Value as Json;

use crate::checker::{Checked, Scope, check};
use crate::cost::{SizeEstimator, estimate};
use crate::error::{CompileError, EvaluationError};
use crate::eval::{Evaluated, Variables, evaluate};
use crate::library::authz::{Authorized, Authorizer, ResourceCheck};
use crate::plan::{Node, plan};
use crate::types::Type;
use crate::value::{Fault, Object, Outcome, Value, from_json};

/// Maximum cost of one evaluation of one expression, as in Kubernetes.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// Budget of all rules of one custom resource, as in Kubernetes.
pub const RUNTIME_COST_BUDGET: u64 = 10_000_000;

/// Cost that expressions may still spend.
///
/// # Examples
/// ```
/// use opkit_cel::{Bindings, Budget, Environment};
///
/// let program = Environment::new().compile("lists.range(1000).all(x, x >= 0)")?;
/// let mut budget = Budget::new(100);
/// let error = program.evaluate(&Bindings::new(), &mut budget).unwrap_err();
/// assert!(error.is_budget_exceeded());
/// assert_eq!(budget.remaining(), 0);
/// # Ok::<(), opkit_cel::CompileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    remaining: u64,
}

impl Budget {
    /// Creates a budget. See [`PER_CALL_LIMIT`] and [`RUNTIME_COST_BUDGET`] for the budgets of
    /// Kubernetes.
    pub fn new(cost: u64) -> Self {
        Self { remaining: cost }
    }

    /// Returns the cost that is left.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Spends a cost. Returns `false`, and spends nothing, if the budget is lower than the cost.
    pub(crate) fn spend(&mut self, cost: u64) -> bool {
        match self.remaining.checked_sub(cost) {
            Some(left) => {
                self.remaining = left;
                true
            }
            None => false,
        }
    }

    /// Spends all of the budget.
    pub(crate) fn exhaust(&mut self) {
        self.remaining = 0;
    }
}

/// Values of the variables of an expression.
///
/// # Examples
/// ```
/// use opkit_cel::{Bindings, Budget, Environment, Type};
/// use serde_json::json;
///
/// let program = Environment::new()
///     .variable("object", Type::Dyn)
///     .compile("object.metadata.name.startsWith('web-')")?;
/// let object = json!({"metadata": {"name": "web-1"}});
/// let bindings = Bindings::new().json("object", &object);
/// let value = program.evaluate(&bindings, &mut Budget::new(1_000))?;
/// assert_eq!(value.as_bool(), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Bindings<'a> {
    values: HashMap<String, Binding<'a>>,
}

#[derive(Debug, Clone)]
enum Binding<'a> {
    Json(&'a Json),
    Value(Value<'a>),
    Failed(String),
}

impl<'a> Bindings<'a> {
    /// Creates a set without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable with a JSON value. The value is not copied.
    #[must_use]
    pub fn json(mut self, name: impl Into<String>, value: &'a Json) -> Self {
        self.values.insert(name.into(), Binding::Json(value));
        self
    }

    /// Adds a variable with a value, such as the result of another expression.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: Value<'a>) -> Self {
        self.values.insert(name.into(), Binding::Value(value));
        self
    }

    /// Adds a variable whose evaluation has failed. An expression that uses it has this error.
    #[must_use]
    pub fn failed(mut self, name: impl Into<String>, message: impl Into<String>) -> Self {
        let failed = Binding::Failed(message.into());
        self.values.insert(name.into(), failed);
        self
    }

    /// Adds a variable with which expressions ask for permissions.
    #[must_use]
    pub fn authorizer(self, name: impl Into<String>, authorizer: &'a dyn Authorizer) -> Self {
        let object = Object::Authorizer(Authorized::new(authorizer));
        self.value(name, Value::Object(object))
    }

    /// Adds a variable with which expressions ask for permissions on one resource, such as
    /// `authorizer.requestResource` in admission policies.
    #[must_use]
    pub fn resource_check(
        self,
        name: impl Into<String>,
        authorizer: &'a dyn Authorizer,
        resource: ResourceCheck,
    ) -> Self {
        let object = Object::ResourceCheck(Authorized::new(authorizer), Arc::new(resource));
        self.value(name, Value::Object(object))
    }
}

/// A compiled expression. Programs can be shared between threads.
#[derive(Debug, Clone)]
pub struct Program {
    node: Node,
    checked: Arc<Checked>,
    cost: u64,
    /// Schemas of the variables that have one.
    schemas: HashMap<String, Arc<Schema>>,
    /// Whether the evaluation needs a large stack.
    is_deep: bool,
}

impl Program {
    /// Compiles an expression.
    pub(crate) fn compile(
        text: &str,
        scope: &Scope,
        sizes: &dyn SizeEstimator,
        schemas: HashMap<String, Arc<Schema>>,
    ) -> Result<Self, CompileError> {
        let is_deep = stack::is_deep(text);
        let compiled = stack::run(is_deep, || Self::build(text, scope, sizes));
        let compiled = compiled.unwrap_or_else(|| {
            let message = "cannot start a thread for a deep expression".to_owned();
            Err(CompileError::Constant(message))
        });
        let (checked, node, cost) = compiled?;
        Ok(Self {
            node,
            checked: Arc::new(checked),
            cost,
            schemas,
            is_deep,
        })
    }

    fn build(
        text: &str,
        scope: &Scope,
        sizes: &dyn SizeEstimator,
    ) -> Result<(Checked, Node, u64), CompileError> {
        let source = Source::new(text);
        let checked = parse(&source)
            .and_then(|parsed| check(parsed, scope))
            .map_err(|issues| CompileError::Invalid(source.display(&issues)))?;
        let node = plan(&checked).map_err(CompileError::Constant)?;
        let cost = estimate(&checked, sizes).max;
        Ok((checked, node, cost))
    }

    /// Returns the type of the result.
    pub fn result_type(&self) -> &Type {
        self.checked.type_of(self.checked.expr.id)
    }

    /// Returns the estimated maximum cost of one evaluation, as Kubernetes estimates it when a CRD
    /// is created.
    pub fn estimated_cost(&self) -> u64 {
        self.cost
    }

    /// Reports whether the expression refers to a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.checked.uses(variable)
    }

    /// Evaluates the expression, and spends its cost from the budget.
    ///
    /// # Errors
    /// Returns the error of the expression, or [`EvaluationError::BudgetExceeded`].
    pub fn evaluate<'a>(
        &'a self,
        bindings: &Bindings<'a>,
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvaluationError> {
        let mut variables = Variables::new();
        for (name, binding) in &bindings.values {
            let value = match binding {
                Binding::Json(json) => {
                    from_json(json, self.schemas.get(name).map(|schema| &**schema))
                }
                Binding::Value(value) => Ok(value.clone()),
                Binding::Failed(message) => Err(Fault::new(message.as_str())),
            };
            variables.insert(name.clone(), value);
        }
        let Evaluated { outcome, cost } = self.run(&variables, budget.remaining());
        if !budget.spend(cost) {
            budget.exhaust();
        }
        outcome.map_err(EvaluationError::from)
    }

    /// Evaluates the expression with a limit. Returns the result and the cost.
    pub(crate) fn run<'a>(&'a self, variables: &Variables<'a>, limit: u64) -> Evaluated<'a> {
        let evaluated = stack::run(self.is_deep, || evaluate(&self.node, variables, limit));
        evaluated.unwrap_or(Evaluated {
            outcome: Err(Fault::Budget),
            cost: limit,
        })
    }
}

impl From<Fault> for EvaluationError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Error(message) => Self::Failed(message),
            Fault::Budget => Self::BudgetExceeded,
        }
    }
}

/// Returns the text of an outcome that is a string.
pub(crate) fn text_of(outcome: Outcome<'_>) -> Result<Option<String>, Fault> {
    outcome.map(|value| value.as_str().map(str::to_owned))
}
