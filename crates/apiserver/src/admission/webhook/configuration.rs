//! The webhooks of all configurations in the store, parsed once per change.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::Value;

use crate::admission::conditions::MatchConditions;
use crate::admission::matching::MatchResources;
use crate::object;
use crate::store::Store;

/// Time after which a call fails, if the webhook does not set one.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The sort of a webhook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WebhookType {
    Mutating,
    Validating,
}

impl WebhookType {
    /// Returns the resource of the configurations in the store.
    fn resource(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations.admissionregistration.k8s.io",
            Self::Validating => "validatingwebhookconfigurations.admissionregistration.k8s.io",
        }
    }

    /// Returns the value of the label `type` in the metrics of webhooks.
    pub(super) fn step(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }
}

/// The effect of a webhook in a dry run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SideEffects {
    Unknown,
    /// The webhook can be called in a dry run.
    None,
    Some,
}

/// A webhook.
#[derive(Debug)]
pub(super) struct Webhook {
    /// A name of the webhook that no other webhook has.
    pub(super) uid: String,
    pub(super) configuration: String,
    pub(super) name: String,
    pub(super) client_config: Value,
    pub(super) matching: Result<MatchResources, String>,
    pub(super) conditions: MatchConditions,
    /// Whether the request passes if the webhook cannot be called.
    pub(super) is_ignored_on_failure: bool,
    pub(super) side_effects: SideEffects,
    pub(super) timeout: Duration,
    pub(super) review_versions: Vec<String>,
    /// Whether the webhook is called again after a later change of the object.
    pub(super) is_reinvoked: bool,
}

impl Webhook {
    fn parse(configuration: &str, index: usize, webhook: &Value) -> Self {
        let text = |field: &str| object::text(webhook, &[field]);
        let name = text("name");
        let timeout = object::at(webhook, &["timeoutSeconds"]).as_u64();
        let is_ignored_on_failure = text("failurePolicy") == "Ignore";
        Self {
            uid: format!("{configuration}/{name}/{index}"),
            configuration: configuration.to_owned(),
            name: name.to_owned(),
            client_config: object::at(webhook, &["clientConfig"]).clone(),
            matching: MatchResources::of_webhook(webhook),
            conditions: MatchConditions::of_webhook(webhook, is_ignored_on_failure),
            is_ignored_on_failure,
            side_effects: match text("sideEffects") {
                "None" | "NoneOnDryRun" => SideEffects::None,
                "" => SideEffects::Unknown,
                _ => SideEffects::Some,
            },
            timeout: timeout.map_or(TIMEOUT, Duration::from_secs),
            review_versions: object::items(webhook, &["admissionReviewVersions"])
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
        }
    }
}

/// The webhooks of one sort, in the order in which they are called.
#[derive(Debug)]
pub(super) struct Configurations {
    type_: WebhookType,
    /// The webhooks, and the revision of the last write to a configuration.
    current: RwLock<(u64, Arc<Vec<Webhook>>)>,
}

impl Configurations {
    pub(super) fn new(type_: WebhookType) -> Self {
        Self {
            type_,
            current: RwLock::default(),
        }
    }

    /// Returns the webhooks of the configurations in the store, sorted by the names of the
    /// configurations.
    pub(super) fn get(&self, store: &Store) -> Arc<Vec<Webhook>> {
        let resource = self.type_.resource();
        // Read before the objects: if one is written meanwhile, the next call parses again.
        let revision = store.resource_revision(resource);
        {
            let current = self.current.read();
            if current.0 == revision {
                return current.1.clone();
            }
        }
        let (mut configurations, _) = store.list(resource, None);
        configurations.sort_by(|one, other| object::name(one).cmp(object::name(other)));
        let webhooks = configurations.iter().flat_map(|configuration| {
            let name = object::name(configuration);
            let webhooks = object::items(configuration, &["webhooks"]).iter();
            let webhooks = webhooks.enumerate();
            webhooks.map(move |(index, webhook)| Webhook::parse(name, index, webhook))
        });
        let webhooks: Arc<Vec<Webhook>> = Arc::new(webhooks.collect());
        let mut current = self.current.write();
        if current.0 < revision {
            *current = (revision, webhooks.clone());
        }
        webhooks
    }
}
