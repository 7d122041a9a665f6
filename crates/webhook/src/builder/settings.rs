//! Settings of a webhook, and the entry of a webhook configuration that they become.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use opkit_apimachinery::names::check_dns_subdomain;
use opkit_client::Kind;
use serde_json::{Value, json};

use crate::admission::endpoint::{AdmissionEndpoint, Decide};
use crate::admission::request::Operation;

/// What happens to a request if a webhook cannot decide about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// The request is refused.
    #[default]
    Fail,
    /// The request passes, with a warning.
    Ignore,
}

/// Whether a webhook changes something outside of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SideEffects {
    /// The webhook changes nothing else.
    #[default]
    None,
    /// The webhook changes nothing else if the request is a dry run.
    NoneOnDryRun,
}

/// Whether a mutating webhook is called again if a later webhook changes the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReinvocationPolicy {
    /// The webhook is called once.
    #[default]
    Never,
    /// The webhook is called again, at most once.
    IfNeeded,
}

/// Scope of the objects that a webhook is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleScope {
    /// Namespaced and cluster-scoped objects.
    #[default]
    All,
    /// Namespaced objects.
    Namespaced,
    /// Cluster-scoped objects.
    Cluster,
}

/// The two sorts of admission webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Mutating,
    Validating,
}

impl Sort {
    fn verb(self) -> &'static str {
        match self {
            Self::Mutating => "mutate",
            Self::Validating => "validate",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WebhookSettings {
    /// Kind of the objects.
    pub(crate) kind: Kind,
    /// Kind whose resource, or a subresource of it, the requests are for.
    pub(crate) resource: Kind,
    pub(crate) subresource: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) operations: Option<BTreeSet<Operation>>,
    /// Whether there is a function for deletions.
    pub(crate) decides_deletion: bool,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) timeout: Duration,
    pub(crate) match_conditions: Vec<(String, String)>,
    pub(crate) namespace_selector: Option<LabelSelector>,
    pub(crate) object_selector: Option<LabelSelector>,
    pub(crate) side_effects: SideEffects,
    pub(crate) reinvocation_policy: ReinvocationPolicy,
    pub(crate) scope: RuleScope,
    pub(crate) while_deleting: bool,
}

impl WebhookSettings {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            resource: kind.clone(),
            kind,
            subresource: None,
            name: None,
            operations: None,
            decides_deletion: false,
            failure_policy: FailurePolicy::default(),
            timeout: Duration::from_secs(10),
            match_conditions: Vec::new(),
            namespace_selector: None,
            object_selector: None,
            side_effects: SideEffects::default(),
            reinvocation_policy: ReinvocationPolicy::default(),
            scope: RuleScope::default(),
            while_deleting: false,
        }
    }

    pub(crate) fn endpoint(&self, sort: Sort, decide: Arc<dyn Decide>) -> Arc<AdmissionEndpoint> {
        Arc::new(AdmissionEndpoint {
            name: self.webhook_name(sort),
            kind: self.kind.clone(),
            failure_policy: self.failure_policy,
            while_deleting: self.while_deleting,
            decide,
        })
    }

    /// Returns the first part of the names: the given name, or the kind and the subresource.
    fn base(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let kind = self.resource.kind.to_lowercase();
        match &self.subresource {
            Some(subresource) => format!("{kind}-{subresource}"),
            None => kind,
        }
    }

    /// Returns the path, with controller-runtime's names: `/mutate-<group>-<version>-<kind>`.
    pub(crate) fn path(&self, sort: Sort) -> String {
        let Kind { group, version, .. } = &self.resource;
        let group = group.replace('.', "-");
        format!("/{}-{group}-{version}-{}", sort.verb(), self.base())
    }

    /// Returns the name in the configuration, which must have at least three parts.
    pub(crate) fn webhook_name(&self, sort: Sort) -> String {
        let Kind { group, version, .. } = &self.resource;
        let group = if group.is_empty() { "core" } else { group };
        format!("{}.{}.{version}.{group}", sort.verb(), self.base())
    }

    /// Returns the operations that the API server calls the webhook for.
    fn operations(&self, sort: Sort) -> BTreeSet<Operation> {
        let mut operations = self
            .operations
            .clone()
            .unwrap_or_else(|| BTreeSet::from([Operation::Create, Operation::Update]));
        match sort {
            Sort::Mutating => {
                operations.remove(&Operation::Delete);
            }
            Sort::Validating if self.decides_deletion => {
                operations.insert(Operation::Delete);
            }
            Sort::Validating => {}
        }
        operations
    }

    /// Checks the settings by the rules of the API server.
    pub(crate) fn check(&self, sort: Sort) -> Result<(), String> {
        let seconds = self.timeout.as_secs();
        if !(1..=30).contains(&seconds) {
            let time = self.timeout;
            return Err(format!("the timeout {time:?} is not from 1 s to 30 s"));
        }
        let name = self.webhook_name(sort);
        check_dns_subdomain(&name)
            .map_err(|problem| format!("its name {name:?} is not valid: {problem}"))?;
        if self.operations(sort).is_empty() {
            let verb = sort.verb();
            return Err(format!(
                "no operation is left for which it can {verb} objects"
            ));
        }
        let mut names = BTreeSet::new();
        for (name, expression) in &self.match_conditions {
            if name.is_empty() || expression.trim().is_empty() {
                return Err("a match condition has no name or no expression".to_owned());
            }
            if !names.insert(name) {
                return Err(format!("two match conditions are named {name:?}"));
            }
        }
        Ok(())
    }

    /// Returns the entry of the webhook in its configuration.
    pub(crate) fn configuration(&self, sort: Sort) -> Value {
        let Kind {
            group,
            version,
            plural,
            ..
        } = &self.resource;
        let resource = match &self.subresource {
            Some(subresource) => format!("{plural}/{subresource}"),
            None => plural.clone(),
        };
        let operations = self.operations(sort);
        let operations: Vec<_> = operations.into_iter().map(Operation::as_str).collect();
        let mut rule = json!({
            "apiGroups": [group], "apiVersions": [version], "operations": operations,
            "resources": [resource],
        });
        let scope = match self.scope {
            RuleScope::All => None,
            RuleScope::Namespaced => Some("Namespaced"),
            RuleScope::Cluster => Some("Cluster"),
        };
        if let Some(scope) = scope {
            set(&mut rule, "scope", scope);
        }
        let mut webhook = json!({
            "name": self.webhook_name(sort),
            "clientConfig": {"service": {"path": self.path(sort)}},
            "rules": [rule],
            "failurePolicy": match self.failure_policy {
                FailurePolicy::Fail => "Fail",
                FailurePolicy::Ignore => "Ignore",
            },
            // The API server converts objects of other versions to the version of the rule.
            "matchPolicy": "Equivalent",
            "sideEffects": match self.side_effects {
                SideEffects::None => "None",
                SideEffects::NoneOnDryRun => "NoneOnDryRun",
            },
            "timeoutSeconds": self.timeout.as_secs(),
            "admissionReviewVersions": ["v1"],
        });
        if sort == Sort::Mutating && self.reinvocation_policy == ReinvocationPolicy::IfNeeded {
            set(&mut webhook, "reinvocationPolicy", "IfNeeded");
        }
        for (field, selector) in [
            ("namespaceSelector", &self.namespace_selector),
            ("objectSelector", &self.object_selector),
        ] {
            if let Some(selector) = selector {
                set(&mut webhook, field, json!(selector));
            }
        }
        if !self.match_conditions.is_empty() {
            let conditions: Vec<_> = (self.match_conditions.iter())
                .map(|(name, expression)| json!({"name": name, "expression": expression}))
                .collect();
            set(&mut webhook, "matchConditions", json!(conditions));
        }
        webhook
    }
}

fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
}
