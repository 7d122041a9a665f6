//! The webhook authorizer: asks an HTTP server with a SubjectAccessReview.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Attributes, Decision};
use crate::authentication::Identity;
use crate::error::StartError;
use crate::object;
use crate::webhook::Webhook;

/// Maximum time of one call, as in Kubernetes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of remembered decisions, as in Kubernetes.
const REMEMBERED: usize = 8_192;
/// Maximum length of the attributes of a request whose decision is remembered, in bytes.
const ATTRIBUTES_MAX: usize = 10_000;

/// The options of the webhook authorizer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AuthorizationWebhook {
    /// Text of the configuration file, in the format of a kubeconfig
    /// (`--authorization-webhook-config-file`).
    pub config: String,
    /// Time for which an allowed request is remembered.
    pub authorized_ttl: Duration,
    /// Time for which a request that is not allowed is remembered.
    pub unauthorized_ttl: Duration,
}

impl AuthorizationWebhook {
    /// Returns the default options with this text of the configuration file.
    #[must_use]
    pub fn new(config: impl Into<String>) -> Self {
        Self {
            config: config.into(),
            authorized_ttl: Duration::from_secs(5 * 60),
            unauthorized_ttl: Duration::from_secs(30),
        }
    }
}

/// The webhook authorizer, with the decisions that it remembers.
#[derive(Debug)]
pub(super) struct WebhookAuthorizer {
    webhook: Webhook,
    authorized_ttl: Duration,
    unauthorized_ttl: Duration,
    /// Status of past reviews by their spec, each until a time.
    remembered: Mutex<HashMap<String, (Instant, Value)>>,
}

impl WebhookAuthorizer {
    pub(super) fn new(options: &AuthorizationWebhook) -> Result<Self, StartError> {
        Ok(Self {
            webhook: Webhook::new(&options.config, TIMEOUT)?,
            authorized_ttl: options.authorized_ttl,
            unauthorized_ttl: options.unauthorized_ttl,
            remembered: Mutex::default(),
        })
    }

    /// Returns the decision of the webhook. If the webhook cannot be asked, there is no opinion,
    /// and the error is in the decision.
    pub(super) async fn authorize(&self, user: &Identity, attributes: &Attributes<'_>) -> Decision {
        let spec = spec(user, attributes);
        let key = spec.to_string();
        let known = self.remembered.lock().get(&key).cloned();
        if let Some((_, status)) = known.filter(|(until, _)| Instant::now() < *until) {
            return decision(&status);
        }
        let review = json!({
            "kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": {}, "spec": spec, "status": {"allowed": false},
        });
        let reviewed = match self.webhook.review(&review).await {
            Ok(reviewed) => reviewed,
            Err(error) => {
                tracing::error!(error, "cannot ask the webhook authorizer");
                let mut decision = Decision::no_opinion("");
                decision.error = Some(error);
                return decision;
            }
        };
        let status = object::at(&reviewed, &["status"]);
        self.remember(key, status);
        decision(status)
    }

    fn remember(&self, key: String, status: &Value) {
        if key.len() > ATTRIBUTES_MAX {
            return;
        }
        let is_allowed = object::at(status, &["allowed"]) == &json!(true);
        let ttl = match is_allowed {
            true => self.authorized_ttl,
            false => self.unauthorized_ttl,
        };
        let now = Instant::now();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED {
            remembered.retain(|_, (until, _)| now < *until);
        }
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, (now + ttl, status.clone()));
    }
}

fn decision(status: &Value) -> Decision {
    let is = |field: &str| object::at(status, &[field]) == &json!(true);
    let reason = object::text(status, &["reason"]);
    match (is("allowed"), is("denied")) {
        (true, true) => {
            let mut decision = Decision::deny(reason);
            let error = "webhook subject access review returned both allow and deny response";
            decision.error = Some(error.to_owned());
            decision
        }
        (false, true) => Decision::deny(reason),
        (true, false) => Decision::allow(reason),
        (false, false) => Decision::no_opinion(reason),
    }
}

/// Returns the spec of the review for a request.
fn spec(user: &Identity, attributes: &Attributes<'_>) -> Value {
    let mut spec = json!({});
    let mut set = |path: &[&str], value: &str| {
        if !value.is_empty() {
            object::set(&mut spec, path, json!(value));
        }
    };
    if attributes.is_resource_request {
        for (field, value) in [
            ("namespace", &attributes.namespace),
            ("verb", &attributes.verb),
            ("group", &attributes.group),
            ("version", &attributes.version),
            ("resource", &attributes.resource),
            ("subresource", &attributes.subresource),
            ("name", &attributes.name),
        ] {
            set(&["resourceAttributes", field], value);
        }
        for (field, value) in [
            ("fieldSelector", &attributes.field_selector),
            ("labelSelector", &attributes.label_selector),
        ] {
            set(&["resourceAttributes", field, "rawSelector"], value);
        }
    } else {
        set(&["nonResourceAttributes", "path"], &attributes.path);
        set(&["nonResourceAttributes", "verb"], &attributes.verb);
    }
    set(&["user"], &user.user);
    set(&["uid"], &user.uid);
    if !user.groups.is_empty() {
        object::set_field(&mut spec, "groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        object::set_field(&mut spec, "extra", json!(user.extra));
    }
    spec
}
