//! Environments: the variables and types that an expression can use.

use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::schema::Schema;
use opkit_syntax::cel::{Source, parse, stack};

use crate::checker::{Scope, check};
use crate::cost::{SizeEstimator, Unknown};
use crate::crd::decl::DeclType;
use crate::crd::escape::unescape;
use crate::declarations::JSON_PATCH;
use crate::error::CompileError;
use crate::program::Program;
use crate::types::Type;

/// Variables and types against which expressions are compiled. All functions of Kubernetes 1.36 are
/// declared.
///
/// # Examples
/// An expression of an admission policy:
/// ```
/// use opkit_cel::{Environment, Type};
///
/// let environment = Environment::new()
///     .variable("object", Type::Dyn)
///     .variable("request", Type::Dyn)
///     .variable("authorizer", Type::authorizer());
/// let program = environment.compile("has(object.spec) && request.operation != 'DELETE'")?;
/// assert_eq!(*program.result_type(), Type::Bool);
/// let error = environment.compile("objekt.spec").unwrap_err();
/// assert!(error.to_string().contains("undeclared reference to 'objekt'"));
/// # Ok::<(), opkit_cel::CompileError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Environment {
    scope: Scope,
    root: Option<Arc<DeclType>>,
    schemas: HashMap<String, Arc<Schema>>,
}

impl Environment {
    /// Creates an environment without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the environment of a rule in a custom resource definition: the variables `self` and
    /// `oldSelf` have the type that the schema declares.
    ///
    /// # Examples
    /// ```
    /// use opkit_apimachinery::schema::Schema;
    /// use opkit_cel::{Bindings, Budget, Environment};
    /// use serde_json::json;
    ///
    /// let schema = Schema::parse(&json!({
    ///     "type": "object",
    ///     "properties": {"replicas": {"type": "integer"}},
    /// }))?;
    /// let program = Environment::crd(&schema).compile("self.replicas <= 10")?;
    /// let object = json!({"replicas": 11});
    /// let bindings = Bindings::new().json("self", &object);
    /// let value = program.evaluate(&bindings, &mut Budget::new(1_000_000))?;
    /// assert_eq!(value.as_bool(), Some(false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn crd(schema: &Schema) -> Self {
        crate::crd::environment(schema, true, false)
    }

    /// Creates an environment for a level of a schema.
    pub(crate) fn typed(root: Arc<DeclType>, schema: Arc<Schema>, is_optional: bool) -> Self {
        let mut scope = Scope {
            has_schema: true,
            ..Scope::default()
        };
        let found = root.declare("selfType", &mut scope.objects);
        let old = match is_optional {
            true => Type::optional(found.clone()),
            false => found.clone(),
        };
        scope.variables.insert("self".to_owned(), found);
        scope.variables.insert("oldSelf".to_owned(), old);
        let schemas = ["self", "oldSelf"].map(|name| (name.to_owned(), schema.clone()));
        Self {
            scope,
            root: Some(root),
            schemas: HashMap::from(schemas),
        }
    }

    /// Declares a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, declared: Type) -> Self {
        self.scope.variables.insert(name.into(), declared);
        self
    }

    /// Declares a variable whose type has the fields of a schema. `type_name` is the name of the
    /// type in errors.
    #[must_use]
    pub fn object(mut self, name: &str, type_name: &str, schema: &Schema) -> Self {
        // Only the fields of custom resources are escaped.
        let mut objects = HashMap::new();
        let declared = match DeclType::of(schema, false) {
            Some(found) => found.declare(type_name, &mut objects),
            None => Type::Dyn,
        };
        for (name, fields) in objects {
            let fields = fields.into_iter();
            let fields = fields.map(|(field, found)| (unescape(&field).unwrap_or(field), found));
            self.scope.objects.insert(name, fields.collect());
        }
        self.scope.variables.insert(name.to_owned(), declared);
        self
    }

    /// Declares a variable that is an object of a kind with this schema. Fields whose names are not
    /// valid in CEL are escaped, as in the rules of custom resources.
    #[must_use]
    pub fn typed_object(mut self, name: &str, type_name: &str, schema: &Schema) -> Self {
        let declared = match DeclType::of(schema, true) {
            Some(found) => found.declare(type_name, &mut self.scope.objects),
            None => Type::Dyn,
        };
        self.scope.variables.insert(name.to_owned(), declared);
        self
    }

    /// Declares a further field of the object type `type_name`.
    #[must_use]
    pub fn field(mut self, type_name: &str, field: &str, declared: Type) -> Self {
        let fields = self.scope.objects.entry(Arc::from(type_name)).or_default();
        fields.insert(field.to_owned(), declared);
        self
    }

    /// Declares a variable that an admission policy composes, which expressions call
    /// `variables.name`.
    #[must_use]
    pub fn composed(self, name: &str, declared: Type) -> Self {
        const VARIABLES: &str = "kubernetes.variables";
        self.field(VARIABLES, name, declared.clone())
            .variable("variables", Type::object(VARIABLES))
            .variable(format!("variables.{name}"), declared)
    }

    /// Declares what only mutating admission policies have: the function `jsonpatch.escapeKey`, and
    /// the object literals `Object{..}` and `JSONPatch{..}`.
    ///
    /// # Examples
    /// ```
    /// use opkit_cel::{Bindings, Budget, Environment};
    /// use serde_json::json;
    ///
    /// let environment = Environment::new().mutation();
    /// let program = environment.compile("Object{spec: Object.spec{replicas: 1 + 2}}")?;
    /// let value = program.evaluate(&Bindings::new(), &mut Budget::new(1_000))?;
    /// assert_eq!(value.to_json(), Some(json!({"spec": {"replicas": 3}})));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn mutation(mut self) -> Self {
        self.scope.extra = Some(&JSON_PATCH);
        self.scope.has_object_literals = true;
        self
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// Returns the syntax errors or the type errors.
    pub fn compile(&self, source: &str) -> Result<Program, CompileError> {
        let sizes: &dyn SizeEstimator = match &self.root {
            Some(root) => &**root,
            None => &Unknown,
        };
        Program::compile(source, &self.scope, sizes, self.schemas.clone())
    }
}

impl Environment {
    /// Reports whether a valid expression refers to a variable.
    pub(crate) fn references(&self, source: &str, variable: &str) -> bool {
        let uses = || {
            parse(&Source::new(source))
                .and_then(|parsed| check(parsed, &self.scope))
                .is_ok_and(|checked| checked.uses(variable))
        };
        stack::run(stack::is_deep(source), uses).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests;
