//! Admission policies: rules in CEL that the API server evaluates itself, without a webhook.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value, json};

/// Group and version of admission policies.
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// Resource that a policy is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyResource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name of the resource.
    pub plural: String,
}

impl PolicyResource {
    /// Returns the resource of a kind.
    pub fn of<K: kube::Resource<DynamicType = ()>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
        }
    }
}

/// `ValidatingAdmissionPolicy` with its binding: CEL rules about the objects of a kind, which the
/// API server evaluates itself. Unlike a rule of a CRD, a policy can be about a kind of another
/// operator or of Kubernetes, and can read the request and the namespace.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_manifests::ValidatingPolicy;
/// let policy = ValidatingPolicy::of::<ConfigMap>("small-maps")
///     .validation("size(object.data) <= 10", "a map may have at most 10 entries");
/// assert_eq!(policy.documents().len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct ValidatingPolicy {
    policy: Policy,
    validations: Vec<Value>,
    audit_annotations: Vec<Value>,
    actions: Vec<&'static str>,
}

/// `MutatingAdmissionPolicy` with its binding: CEL expressions that change the objects of a kind,
/// which the API server evaluates itself. Kubernetes serves it from 1.36 on.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_manifests::MutatingPolicy;
/// let policy = MutatingPolicy::of::<ConfigMap>("labelled-maps").apply_configuration(
///     "Object{metadata: Object.metadata{labels: {'checked': 'true'}}}",
/// );
/// assert_eq!(policy.documents()[0]["kind"], "MutatingAdmissionPolicy");
/// ```
#[derive(Debug, Clone)]
pub struct MutatingPolicy {
    policy: Policy,
    mutations: Vec<Value>,
    reinvocation: &'static str,
}

/// Parts that both kinds of policies have.
#[derive(Debug, Clone)]
struct Policy {
    name: String,
    resource: PolicyResource,
    operations: Vec<String>,
    failure_policy: &'static str,
    match_conditions: Vec<Value>,
    variables: Vec<Value>,
    /// Selector of the binding.
    namespace_selector: Option<LabelSelector>,
    object_selector: Option<LabelSelector>,
}

impl Policy {
    fn new(name: String, resource: PolicyResource) -> Self {
        Self {
            name,
            resource,
            operations: vec!["CREATE".to_owned(), "UPDATE".to_owned()],
            failure_policy: "Fail",
            match_conditions: Vec::new(),
            variables: Vec::new(),
            namespace_selector: None,
            object_selector: None,
        }
    }

    /// Returns the policy with these fields in its spec, and the binding with those in its own.
    fn documents(&self, sort: &str, spec: Value, binding: Value) -> Vec<Value> {
        let PolicyResource {
            group,
            version,
            plural,
        } = &self.resource;
        let mut fields = json!({
            "failurePolicy": self.failure_policy,
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version], "operations": self.operations,
                "resources": [plural],
            }]},
        });
        add(&mut fields, spec);
        if !self.match_conditions.is_empty() {
            add(
                &mut fields,
                json!({"matchConditions": self.match_conditions}),
            );
        }
        if !self.variables.is_empty() {
            add(&mut fields, json!({"variables": self.variables}));
        }
        let mut selectors = Map::new();
        for (field, selector) in [
            ("namespaceSelector", &self.namespace_selector),
            ("objectSelector", &self.object_selector),
        ] {
            if let Some(selector) = selector {
                selectors.insert(field.to_owned(), json!(selector));
            }
        }
        let mut bound = json!({"policyName": self.name});
        add(&mut bound, binding);
        if !selectors.is_empty() {
            add(&mut bound, json!({"matchResources": selectors}));
        }
        let document = |kind: String, name: &str, spec: Value| {
            json!({
                "apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec,
            })
        };
        let binding = format!("{}-binding", self.name);
        vec![
            document(format!("{sort}AdmissionPolicy"), &self.name, fields),
            document(format!("{sort}AdmissionPolicyBinding"), &binding, bound),
        ]
    }
}

/// Methods that both kinds of policies have.
macro_rules! settings {
    ($policy:ident) => {
        impl $policy {
            /// Evaluates the policy only for requests for which a CEL expression is true.
            pub fn match_condition(
                mut self,
                name: impl Into<String>,
                expression: impl Into<String>,
            ) -> Self {
                let (name, expression) = (name.into(), expression.into());
                let condition = json!({"name": name, "expression": expression});
                self.policy.match_conditions.push(condition);
                self
            }

            /// Adds a variable, which later expressions read as `variables.<name>`.
            pub fn variable(
                mut self,
                name: impl Into<String>,
                expression: impl Into<String>,
            ) -> Self {
                let (name, expression) = (name.into(), expression.into());
                let variable = json!({"name": name, "expression": expression});
                self.policy.variables.push(variable);
                self
            }

            /// Sets the operations that the policy is about, such as `DELETE`; create and update by
            /// default.
            pub fn operations<O: Into<String>>(
                mut self,
                operations: impl IntoIterator<Item = O>,
            ) -> Self {
                self.policy.operations = operations.into_iter().map(Into::into).collect();
                self
            }

            /// Lets requests pass if an expression fails. By default they are refused.
            pub fn ignore_failures(mut self) -> Self {
                self.policy.failure_policy = "Ignore";
                self
            }

            /// Evaluates the policy only for objects in namespaces with these labels.
            pub fn namespace_selector(mut self, selector: LabelSelector) -> Self {
                self.policy.namespace_selector = Some(selector);
                self
            }

            /// Evaluates the policy only for objects with these labels.
            pub fn object_selector(mut self, selector: LabelSelector) -> Self {
                self.policy.object_selector = Some(selector);
                self
            }

            /// Returns the name of the policy.
            pub fn name(&self) -> &str {
                &self.policy.name
            }
        }
    };
}

settings!(ValidatingPolicy);
settings!(MutatingPolicy);

impl ValidatingPolicy {
    /// Creates a policy about the objects of a kind, without rules.
    pub fn of<K: kube::Resource<DynamicType = ()>>(name: impl Into<String>) -> Self {
        Self::new(name, PolicyResource::of::<K>())
    }

    /// Creates a policy about a resource that is known only at run time, without rules.
    pub fn new(name: impl Into<String>, resource: PolicyResource) -> Self {
        Self {
            policy: Policy::new(name.into(), resource),
            validations: Vec::new(),
            audit_annotations: Vec::new(),
            actions: vec!["Deny"],
        }
    }

    /// Adds a CEL rule. A request for which it is false is refused with this message.
    pub fn validation(mut self, expression: impl Into<String>, message: impl Into<String>) -> Self {
        let (expression, message) = (expression.into(), message.into());
        let validation = json!({"expression": expression, "message": message});
        self.validations.push(validation);
        self
    }

    /// Adds a CEL expression whose result, a string, becomes an annotation of the audit event.
    pub fn audit_annotation(
        mut self,
        key: impl Into<String>,
        expression: impl Into<String>,
    ) -> Self {
        let (key, expression) = (key.into(), expression.into());
        let annotation = json!({"key": key, "valueExpression": expression});
        self.audit_annotations.push(annotation);
        self
    }

    /// Only warns the client if a rule is false, and lets the request pass.
    pub fn warn_only(mut self) -> Self {
        self.actions = vec!["Warn"];
        self
    }

    /// Returns the policy and its binding.
    pub fn documents(&self) -> Vec<Value> {
        let mut spec = json!({"validations": self.validations});
        if !self.audit_annotations.is_empty() {
            add(
                &mut spec,
                json!({"auditAnnotations": self.audit_annotations}),
            );
        }
        let binding = json!({"validationActions": self.actions});
        self.policy.documents("Validating", spec, binding)
    }
}

impl MutatingPolicy {
    /// Creates a policy about the objects of a kind, without changes.
    pub fn of<K: kube::Resource<DynamicType = ()>>(name: impl Into<String>) -> Self {
        Self::new(name, PolicyResource::of::<K>())
    }

    /// Creates a policy about a resource that is known only at run time, without changes.
    pub fn new(name: impl Into<String>, resource: PolicyResource) -> Self {
        Self {
            policy: Policy::new(name.into(), resource),
            mutations: Vec::new(),
            reinvocation: "Never",
        }
    }

    /// Adds a CEL expression that returns a part of the object, which is merged into the object as
    /// server-side apply does.
    pub fn apply_configuration(mut self, expression: impl Into<String>) -> Self {
        let expression = json!({"expression": expression.into()});
        self.mutations.push(json!({
            "patchType": "ApplyConfiguration", "applyConfiguration": expression,
        }));
        self
    }

    /// Adds a CEL expression that returns a list of JSON patch operations.
    pub fn json_patch(mut self, expression: impl Into<String>) -> Self {
        let expression = json!({"expression": expression.into()});
        self.mutations
            .push(json!({"patchType": "JSONPatch", "jsonPatch": expression}));
        self
    }

    /// Evaluates the policy again if a later policy or webhook changes the object.
    pub fn reinvoke_if_needed(mut self) -> Self {
        self.reinvocation = "IfNeeded";
        self
    }

    /// Returns the policy and its binding.
    pub fn documents(&self) -> Vec<Value> {
        let spec = json!({
            "mutations": self.mutations, "reinvocationPolicy": self.reinvocation,
        });
        self.policy.documents("Mutating", spec, json!({}))
    }
}

/// Adds the fields of one object to another.
fn add(object: &mut Value, fields: Value) {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
}

#[cfg(test)]
mod tests;
