//! Selection of requests by rules and selectors, for webhooks and admission policies.

use std::sync::Arc;

use opkit_apimachinery::selector::LabelSelector;
use serde_json::{Map, Value};

use super::rules::Rule;
use super::{Attributes, Operation};
use crate::kinds::Kind;
use crate::object;
use crate::registry::{Registry, storage_name};
use crate::status::{ApiError, ApiResult};
use crate::store::Key;

/// The fields of a webhook or of a policy that select requests.
#[derive(Clone, Debug)]
pub(crate) struct MatchResources {
    namespace_selector: LabelSelector,
    object_selector: LabelSelector,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Whether these are the fields of a policy or of its binding.
    is_policy: bool,
    /// Whether a rule for another version of the same resource selects a request, too.
    is_equivalent: bool,
}

impl MatchResources {
    /// Parses the fields of a webhook.
    ///
    /// # Errors
    /// If a selector is not valid.
    pub(crate) fn of_webhook(webhook: &Value) -> Result<Self, String> {
        Self::parse(webhook, "rules")
    }

    /// Parses the field `matchConstraints` of a policy, or `matchResources` of a binding.
    ///
    /// # Errors
    /// If a selector is not valid.
    pub(crate) fn of_policy(constraints: &Value) -> Result<Self, String> {
        Self::parse(constraints, "resourceRules")
    }

    fn parse(object: &Value, rules: &str) -> Result<Self, String> {
        let selector = |field: &str| {
            let selector = object::at(object, &[field]);
            match selector.is_null() {
                true => Ok(LabelSelector::everything()),
                false => LabelSelector::from_object(selector).map_err(|error| error.to_string()),
            }
        };
        let rules_of = |field: &str| -> Vec<Rule> {
            let rules = object::items(object, &[field]).iter();
            rules.map(Rule::parse).collect()
        };
        Ok(Self {
            namespace_selector: selector("namespaceSelector")?,
            object_selector: selector("objectSelector")?,
            rules: rules_of(rules),
            excluded: rules_of("excludeResourceRules"),
            is_policy: rules == "resourceRules",
            is_equivalent: object::text(object, &["matchPolicy"]) != "Exact",
        })
    }

    /// Returns the kind in whose version the request is presented, or `None` if the request is not
    /// selected. `object` is the new object.
    pub(crate) fn select(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> ApiResult<Option<Arc<Kind>>> {
        let in_namespace = self.matches_namespace(registry, attributes, object);
        if matches!(in_namespace, Ok(false)) || !self.matches_object(attributes, object) {
            return Ok(None);
        }
        if self.is_excluded(registry, attributes) {
            return Ok(None);
        }
        let Some(kind) = self.kind(registry, attributes) else {
            return Ok(None);
        };
        // A missing namespace matters only to requests that the rules select.
        in_namespace?;
        Ok(Some(kind))
    }

    /// Returns the kind of the first rule that selects the request: that of the request, or an
    /// equivalent kind.
    fn kind(&self, registry: &Registry, attributes: &Attributes<'_>) -> Option<Arc<Kind>> {
        let requested = attributes.kind();
        // A policy or a binding without rules selects every resource. A webhook has rules.
        if self.rules.is_empty() && self.is_policy {
            return Some(requested.clone());
        }
        if self
            .rules
            .iter()
            .any(|rule| rule.matches(attributes, requested))
        {
            return Some(requested.clone());
        }
        if !self.is_equivalent {
            return None;
        }
        let equivalents = equivalents(registry, requested);
        let selected = |rule: &Rule| {
            let mut kinds = equivalents.iter();
            kinds.find(|kind| rule.matches(attributes, kind)).cloned()
        };
        self.rules.iter().find_map(selected)
    }

    fn is_excluded(&self, registry: &Registry, attributes: &Attributes<'_>) -> bool {
        if self.excluded.is_empty() {
            return false;
        }
        let excludes = |kind: &Kind| {
            let mut excluded = self.excluded.iter();
            excluded.any(|rule| rule.matches(attributes, kind))
        };
        excludes(attributes.kind())
            || (self.is_equivalent
                && equivalents(registry, attributes.kind())
                    .iter()
                    .any(|kind| excludes(kind)))
    }

    fn matches_namespace(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> ApiResult<bool> {
        let kind = attributes.kind();
        let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
        let namespace = attributes.namespace();
        if (namespace.is_empty() && !is_namespace) || self.namespace_selector.is_empty() {
            return Ok(true);
        }
        let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
        if is_namespace && attributes.target.subresource.is_empty() && is_written {
            let labels = object.and_then(object::labels);
            return Ok(self.namespace_selector.matches(labels));
        }
        let found = registry.store.get("namespaces", &Key::new("", namespace));
        let found = found.ok_or_else(|| ApiError::namespace_not_found(namespace))?;
        Ok(self.namespace_selector.matches(object::labels(&found)))
    }

    fn matches_object(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> bool {
        if self.object_selector.is_empty() {
            return true;
        }
        let empty = Map::new();
        let matches = |object: &Value| {
            let labels = object::labels(object).or(Some(&empty));
            self.object_selector.matches(labels)
        };
        object.is_some_and(matches) || attributes.old.is_some_and(matches)
    }
}

/// Returns the other kinds that have the same stored objects, such as the other versions of a
/// custom resource.
fn equivalents(registry: &Registry, kind: &Kind) -> Vec<Arc<Kind>> {
    let storage = storage_name(kind);
    let is_other = |other: &Kind| other.group != kind.group || other.version != kind.version;
    let mut all = registry.catalog.all();
    all.retain(|other| is_other(other) && storage_name(other) == storage);
    all
}
