//! Validation of admission policies and their bindings.

use opkit_cel::{Environment, Type};
use serde_json::json;

use super::field::{Errors, Field};
use super::webhook_configurations::{
    self, FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES,
};
use super::{format, selectors};

/// Words that cannot be the name of a variable.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
/// Limits of audit annotations: their number, and the length of an expression in bytes.
const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_MAX: usize = 5 * 1024;
const CONDITIONS_MAX: usize = 64;

/// The variables that an expression can use beside the objects and the request.
#[derive(Clone, Copy)]
pub(super) struct Variables {
    pub(super) has_params: bool,
    pub(super) has_authorizer: bool,
    pub(super) has_variables: bool,
}

/// Adds an error if an expression cannot be compiled, or its result has none of the `types`.
fn expression(field: &Field<'_>, variables: Variables, types: &[Type], errors: &mut Errors) {
    let mut environment = Environment::new();
    for name in ["object", "oldObject", "request", "namespaceObject"] {
        environment = environment.variable(name, Type::Dyn);
    }
    if variables.has_params {
        environment = environment.variable("params", Type::Dyn);
    }
    if variables.has_variables {
        environment = environment.variable("variables", Type::Dyn);
    }
    if variables.has_authorizer {
        environment = environment
            .variable("authorizer", Type::authorizer())
            .variable("authorizer.requestResource", Type::Dyn);
    }
    match environment.compile(field.text()) {
        Err(error) => errors.invalid(field, &format!("compilation failed: {error}")),
        Ok(program) => {
            let result = program.result_type();
            if types.is_empty() || types.contains(result) || *result == Type::Dyn {
                return;
            }
            let names: Vec<String> = types.iter().map(type_name).collect();
            let wanted = match names.as_slice() {
                [name] => name.clone(),
                names => format!("one of [{}]", names.join(" ")),
            };
            let detail = format!("must evaluate to {wanted} but got {}", type_name(result));
            errors.invalid(field, &detail);
        }
    }
}

/// Returns the name of a type in messages, which differs from that in declarations for null.
fn type_name(type_: &Type) -> String {
    match type_ {
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}

/// Adds the errors in the conditions under which a webhook or policy applies.
pub(super) fn match_conditions(list: &Field<'_>, variables: Variables, errors: &mut Errors) {
    errors.not_more(list, CONDITIONS_MAX);
    let mut names: Vec<&str> = Vec::new();
    for condition in list.items() {
        let (text, name) = (condition.get("expression"), condition.get("name"));
        match text.text().trim() {
            "" => errors.required(&text, ""),
            trimmed => {
                let value = json!(trimmed);
                let text = Field::new(text.path.clone(), &value);
                expression(&text, variables, &[Type::Bool], errors);
            }
        }
        match name.text() {
            "" => errors.required(&name, ""),
            text => errors.rules(&name, format::qualified_name(text)),
        }
        if !name.is_empty() {
            if names.contains(&name.text()) {
                errors.duplicate(&name.path, name.text());
            }
            names.push(name.text());
        }
    }
}

/// Adds the errors in what validating and mutating policies have in common. Returns the variables
/// of their expressions.
fn policy_spec(spec: &Field<'_>, is_mutating: bool, errors: &mut Errors) -> Variables {
    let failure = spec.get("failurePolicy");
    match failure.is_set() {
        true => errors.supported(&failure, FAILURE_POLICIES),
        false => errors.required(&failure, ""),
    }
    let params = spec.get("paramKind");
    if params.is_set() {
        param_kind(&params, errors);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        match_resources(&constraints, errors);
        let rules = constraints.get("resourceRules");
        if rules.is_empty() {
            errors.required(&rules, "");
        }
        if is_mutating {
            mutating_operations(&rules, errors);
        }
    } else {
        errors.required(&constraints, "");
    }
    let list = spec.get("variables");
    let variables = Variables {
        has_params: params.is_set(),
        has_authorizer: true,
        has_variables: !list.is_empty(),
    };
    let conditions = Variables {
        has_variables: false,
        ..variables
    };
    match_conditions(&spec.get("matchConditions"), conditions, errors);
    for variable in list.items() {
        let (name, text) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            errors.required(&name, "name is not specified");
        } else if !is_identifier(name.text()) {
            errors.invalid(&name, "must be a valid CEL identifier");
        }
        match text.text().trim() {
            "" => errors.required(&text, "expression is not specified"),
            _ => expression(&text, variables, &[], errors),
        }
    }
    variables
}

fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start)
        && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && !RESERVED.contains(&name)
}

fn param_kind(kind: &Field<'_>, errors: &mut Errors) {
    let (version, name) = (kind.get("apiVersion"), kind.get("kind"));
    let text = version.text();
    if text.is_empty() {
        errors.required(&version, "");
    } else if text.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {text}");
        errors.invalid(&version, &detail);
    } else {
        let (group, number) = text.split_once('/').unwrap_or(("", text));
        let rules = format::dns_subdomain(group);
        if !group.is_empty() && !rules.is_empty() {
            errors.invalid_value(&version.path, json!(group), &rules.join(","));
        }
        let rules = format::rfc_1035_label(number);
        if number.is_empty() {
            errors.invalid(&version, "version must be specified");
        } else if !rules.is_empty() {
            errors.invalid_value(&version.path, json!(number), &rules.join(","));
        }
    }
    let rules = format::rfc_1035_label(&name.text().to_lowercase());
    if name.is_empty() {
        errors.required(&name, "");
    } else if !rules.is_empty() {
        let detail = format!(
            "may have mixed case, but should otherwise match: {}",
            rules.join(",")
        );
        errors.invalid(&name, &detail);
    }
}

fn match_resources(resources: &Field<'_>, errors: &mut Errors) {
    let policy = resources.get("matchPolicy");
    match policy.is_set() {
        true => errors.supported(&policy, MATCH_POLICIES),
        false => errors.required(&policy, ""),
    }
    for name in ["namespaceSelector", "objectSelector"] {
        let selector = resources.get(name);
        match selector.is_set() {
            true => selectors::selector(&selector, errors),
            false => errors.required(&selector, ""),
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.get(list).items() {
            let mut names: Vec<&str> = Vec::new();
            for name in rule.get("resourceNames").items() {
                errors.rules(&name, format::path_segment(name.text()));
                if names.contains(&name.text()) {
                    errors.duplicate(&name.path, name.text());
                }
                names.push(name.text());
            }
            webhook_configurations::rule(&rule, errors);
        }
    }
}

/// Adds an error for each operation in which an object cannot be changed.
fn mutating_operations(rules: &Field<'_>, errors: &mut Errors) {
    for operation in rules.items().flat_map(|r| r.get("operations").items()) {
        let operation = operation.renamed(rules.join("operations"));
        errors.supported(&operation, &["*", "CONNECT", "CREATE", "UPDATE"]);
    }
}

/// Adds the errors in a ValidatingAdmissionPolicy.
pub(super) fn validating_policy(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let variables = policy_spec(&spec, false, errors);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.required(&validations, detail);
        errors.required(&annotations, detail);
        return;
    }
    for validation in validations.items() {
        self::validation(&validation, variables, errors);
    }
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.invalid(&annotations, &detail);
    }
    let policy = object.at(&["metadata", "name"]).text();
    let mut keys: Vec<&str> = Vec::new();
    for annotation in annotations.items() {
        let (key, text) = (annotation.get("key"), annotation.get("valueExpression"));
        let name = format!("{policy}/{}", key.text());
        for rule in format::qualified_name(&name) {
            errors.invalid_value(&key.path, json!(name), &rule);
        }
        let trimmed = text.text().trim();
        if trimmed.is_empty() {
            errors.required(&text, "valueExpression is not specified");
        } else if trimmed.len() > ANNOTATION_MAX {
            let detail = format!("must not exceed {ANNOTATION_MAX} bytes in length");
            errors.required(&text, &detail);
        } else {
            expression(&text, variables, &[Type::String, Type::Null], errors);
        }
        if keys.contains(&key.text()) {
            errors.duplicate(&key.path, key.text());
        }
        keys.push(key.text());
    }
}

fn validation(validation: &Field<'_>, variables: Variables, errors: &mut Errors) {
    let text = validation.get("expression");
    match text.text().trim() {
        "" => errors.required(&text, "expression is not specified"),
        _ => expression(&text, variables, &[Type::Bool], errors),
    }
    let dynamic = validation.get("messageExpression");
    if !dynamic.is_empty() {
        match dynamic.text().trim() {
            "" => errors.invalid(&dynamic, "must be non-empty if specified"),
            _ => {
                let variables = Variables {
                    has_authorizer: false,
                    ..variables
                };
                expression(&dynamic, variables, &[Type::String], errors);
            }
        }
    }
    let message = validation.get("message");
    let trimmed = message.text().trim();
    if !message.is_empty() && trimmed.is_empty() {
        errors.invalid(&message, "must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        errors.invalid(&message, "must not contain line breaks");
    }
    errors.supported_if_set(&validation.get("reason"), REASONS);
}

/// Adds the errors in a ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding.
pub(super) fn binding(object: &Field<'_>, is_mutating: bool, errors: &mut Errors) {
    let spec = object.get("spec");
    let name = spec.get("policyName");
    match name.text() {
        "" => errors.required(&name, ""),
        text => errors.rules(&name, format::dns_subdomain(text)),
    }
    let params = spec.get("paramRef");
    if params.is_set() {
        param_ref(&params, errors);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        match_resources(&resources, errors);
    }
    if is_mutating {
        return mutating_operations(&resources.get("resourceRules"), errors);
    }
    let actions = spec.get("validationActions");
    let mut seen: Vec<&str> = Vec::new();
    for action in actions.items() {
        errors.supported(&action, ACTIONS);
        if seen.contains(&action.text()) {
            errors.duplicate(&action.path, action.text());
        }
        seen.push(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        errors.invalid(&actions, detail);
    }
    if seen.is_empty() {
        errors.required(&actions, "at least one validation action is required");
    }
}

fn param_ref(reference: &Field<'_>, errors: &mut Errors) {
    let (name, selector) = (reference.get("name"), reference.get("selector"));
    let detail = "name and selector are mutually exclusive";
    if !name.is_empty() {
        errors.rules(&name, format::path_segment(name.text()));
        if selector.is_set() {
            errors.forbidden(&name, detail);
        }
    }
    if selector.is_set() {
        selectors::selector(&selector, errors);
        if !name.is_empty() {
            errors.forbidden(&selector, detail);
        }
    }
    if name.is_empty() && !selector.is_set() {
        errors.required(reference, "one of name or selector must be specified");
    }
    let action = reference.get("parameterNotFoundAction");
    errors.required_of(&action, &["Deny", "Allow"]);
}

/// Adds the errors in a MutatingAdmissionPolicy. The types of its expressions are not checked.
pub(super) fn mutating_policy(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    policy_spec(&spec, true, errors);
    let mutations = spec.get("mutations");
    if mutations.is_empty() {
        errors.required(&mutations, "mutations must contain at least one item");
    }
    for mutation in mutations.items() {
        let type_ = mutation.get("patchType");
        let (patch, apply) = (
            mutation.get("jsonPatch"),
            mutation.get("applyConfiguration"),
        );
        let (own, other) = match type_.text() {
            "JSONPatch" => (patch, apply),
            "ApplyConfiguration" => (apply, patch),
            _ => {
                errors.required_of(&type_, &["ApplyConfiguration", "JSONPatch"]);
                continue;
            }
        };
        let detail = format!("be specified when patchType is {}", type_.text());
        if !own.is_set() {
            errors.required(&own, &format!("must {detail}"));
        } else if own.get("expression").text().trim().is_empty() {
            errors.required(&own.get("expression"), "");
        }
        if other.is_set() {
            let name = other.path.rsplit('.').next().unwrap_or_default();
            let value = json!(format!("{{{name}}}"));
            errors.invalid_value(&other.path, value, &format!("must not {detail}"));
        }
    }
    errors.required_of(&spec.get("reinvocationPolicy"), REINVOCATION_POLICIES);
}
