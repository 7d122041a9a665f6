//! Policies and bindings, parsed and compiled once per change.

use std::sync::Arc;

use opkit_cel::{Environment, Program, Type};
use parking_lot::RwLock;
use serde_json::Value;

use crate::admission::conditions::MatchConditions;
use crate::admission::environment;
use crate::admission::matching::MatchResources;
use crate::object;
use crate::store::Store;

/// The sort of a policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PolicyType {
    Mutating,
    Validating,
}

impl PolicyType {
    /// Returns the resources of the policies and of their bindings in the store.
    pub(super) fn resources(self) -> [&'static str; 2] {
        match self {
            Self::Mutating => [
                "mutatingadmissionpolicies.admissionregistration.k8s.io",
                "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
            ],
            Self::Validating => [
                "validatingadmissionpolicies.admissionregistration.k8s.io",
                "validatingadmissionpolicybindings.admissionregistration.k8s.io",
            ],
        }
    }
}

/// An expression and its program, or the error of its compilation.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    pub(crate) program: Result<Program, String>,
}

impl Expression {
    /// Compiles an expression whose type must be one of `types`.
    pub(crate) fn compile(environment: &Environment, text: &str, types: &[Type]) -> Self {
        let compiled = environment.compile(text).map_err(|error| error.to_string());
        let program = compiled.and_then(|program| {
            let found = program.result_type();
            let is_wanted = types.is_empty() || *found == Type::Dyn || types.contains(found);
            match (is_wanted, types) {
                (true, _) => Ok(program),
                (false, [one]) => Err(format!("must evaluate to {one} but got {found}")),
                (false, several) => {
                    let several: Vec<String> = several.iter().map(ToString::to_string).collect();
                    let several = several.join(" ");
                    Err(format!(
                        "must evaluate to one of [{several}] but got {found}"
                    ))
                }
            }
        });
        Self {
            text: text.to_owned(),
            program,
        }
    }
}

/// A rule of a validating policy.
#[derive(Debug)]
pub(crate) struct Validation {
    pub(crate) expression: Expression,
    pub(crate) message: String,
    pub(crate) message_expression: Option<Expression>,
    /// The reason in the error, such as `Forbidden`.
    pub(crate) reason: String,
}

/// A mutation of a mutating policy.
#[derive(Debug)]
pub(crate) enum Mutation {
    /// An expression whose value is merged into the object, as by server-side apply.
    ApplyConfiguration(Expression),
    /// An expression whose value is a list of JSON patch operations.
    JsonPatch(Expression),
}

/// A policy with its bindings.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) matching: Result<MatchResources, String>,
    pub(crate) conditions: MatchConditions,
    /// Whether a request passes if the policy cannot be evaluated.
    pub(crate) is_ignored_on_failure: bool,
    /// API version and kind of the parameters.
    pub(crate) param_kind: Option<(String, String)>,
    pub(crate) variables: Vec<(String, Expression)>,
    pub(crate) validations: Vec<Validation>,
    /// Keys and values of audit annotations.
    pub(crate) audit_annotations: Vec<(String, Expression)>,
    pub(crate) mutations: Vec<Mutation>,
    /// Whether the policy is evaluated again after a later change of the object.
    pub(crate) is_reinvoked: bool,
    pub(crate) bindings: Vec<Binding>,
}

/// A binding of a policy.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: String,
    /// The field `paramRef`.
    pub(crate) param_ref: Value,
    /// The requests to which the policy applies. `None` if these are the same as those of the
    /// policy.
    pub(crate) matching: Option<Result<MatchResources, String>>,
    /// The actions after a failed validation: `Deny`, `Warn`, `Audit`.
    pub(crate) actions: Vec<String>,
}

impl Policy {
    /// Parses a policy. `bindings` are those of all policies of this sort.
    fn parse(type_: PolicyType, policy: &Value, bindings: &[Arc<Value>]) -> Self {
        let name = object::name(policy);
        let spec = object::at(policy, &["spec"]);
        let is_ignored_on_failure = object::text(spec, &["failurePolicy"]) == "Ignore";
        let param_kind = object::at(spec, &["paramKind"]);
        let param_kind = (!param_kind.is_null()).then(|| {
            (
                object::text(param_kind, &["apiVersion"]).to_owned(),
                object::text(param_kind, &["kind"]).to_owned(),
            )
        });
        let mut environment = environment::policy(type_, param_kind.is_some());
        let mut variables = Vec::new();
        for variable in object::items(spec, &["variables"]) {
            let name = object::text(variable, &["name"]);
            let text = object::text(variable, &["expression"]);
            let expression = Expression::compile(&environment, text, &[]);
            let type_ = match &expression.program {
                Ok(program) => program.result_type().clone(),
                Err(_) => Type::Dyn,
            };
            environment = environment.composed(name, type_);
            variables.push((name.to_owned(), expression));
        }
        let compile = |text: &str, types: &[Type]| Expression::compile(&environment, text, types);
        let validations = object::items(spec, &["validations"]).iter().map(|rule| {
            let message = object::text(rule, &["messageExpression"]);
            Validation {
                expression: compile(object::text(rule, &["expression"]), &[Type::Bool]),
                message: object::text(rule, &["message"]).to_owned(),
                message_expression: (!message.is_empty())
                    .then(|| compile(message, &[Type::String])),
                reason: object::text(rule, &["reason"]).to_owned(),
            }
        });
        let annotations = object::items(spec, &["auditAnnotations"]).iter();
        let annotations = annotations.map(|annotation| {
            let value = object::text(annotation, &["valueExpression"]);
            let value = compile(value, &[Type::String, Type::Null]);
            (object::text(annotation, &["key"]).to_owned(), value)
        });
        let mutations =
            object::items(spec, &["mutations"]).iter().map(|mutation| {
                match object::text(mutation, &["patchType"]) {
                    "JSONPatch" => {
                        let text = object::text(mutation, &["jsonPatch", "expression"]);
                        Mutation::JsonPatch(compile(text, &[Type::list(Type::json_patch())]))
                    }
                    _ => {
                        let text = object::text(mutation, &["applyConfiguration", "expression"]);
                        Mutation::ApplyConfiguration(compile(text, &[Type::apply_configuration()]))
                    }
                }
            });
        Self {
            name: name.to_owned(),
            matching: MatchResources::of_policy(object::at(spec, &["matchConstraints"])),
            conditions: MatchConditions::of_policy(spec, param_kind.is_some()),
            is_ignored_on_failure,
            validations: validations.collect(),
            audit_annotations: annotations.collect(),
            mutations: mutations.collect(),
            is_reinvoked: object::text(spec, &["reinvocationPolicy"]) == "IfNeeded",
            param_kind,
            variables,
            bindings: bindings
                .iter()
                .filter(|binding| object::text(binding, &["spec", "policyName"]) == name)
                .map(|binding| Binding::parse(binding))
                .collect(),
        }
    }
}

impl Binding {
    fn parse(binding: &Value) -> Self {
        let spec = object::at(binding, &["spec"]);
        let resources = object::at(spec, &["matchResources"]);
        Self {
            name: object::name(binding).to_owned(),
            param_ref: object::at(spec, &["paramRef"]).clone(),
            matching: (!resources.is_null()).then(|| MatchResources::of_policy(resources)),
            actions: object::items(spec, &["validationActions"])
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        }
    }
}

/// The policies of one sort, sorted by their names.
#[derive(Debug)]
pub(crate) struct Policies {
    type_: PolicyType,
    /// The policies, and the revision of the last write to a policy or binding.
    current: RwLock<(u64, Arc<Vec<Policy>>)>,
}

impl Policies {
    pub(crate) fn new(type_: PolicyType) -> Self {
        Self {
            type_,
            current: RwLock::default(),
        }
    }

    /// Returns the policies in the store that have a binding.
    pub(crate) fn get(&self, store: &Store) -> Arc<Vec<Policy>> {
        let resources = self.type_.resources();
        // Read before the objects: if one is written meanwhile, the next call parses again.
        let revisions = resources.map(|resource| store.resource_revision(resource));
        let revision = revisions.into_iter().max().unwrap_or_default();
        {
            let current = self.current.read();
            if current.0 == revision {
                return current.1.clone();
            }
        }
        let [mut policies, mut bindings] = resources.map(|resource| store.list(resource, None).0);
        policies.sort_by(|one, other| object::name(one).cmp(object::name(other)));
        bindings.sort_by(|one, other| object::name(one).cmp(object::name(other)));
        let policies = policies
            .iter()
            .map(|policy| Policy::parse(self.type_, policy, &bindings))
            .filter(|policy| !policy.bindings.is_empty());
        let policies: Arc<Vec<Policy>> = Arc::new(policies.collect());
        let mut current = self.current.write();
        if current.0 < revision {
            *current = (revision, policies.clone());
        }
        policies
    }
}
