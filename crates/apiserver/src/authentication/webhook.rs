//! The webhook authenticator: asks an HTTP server with a TokenReview.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AuthenticationError, Identity};
use crate::error::StartError;
use crate::object;
use crate::webhook::Webhook;

/// Maximum time of one call, as in Kubernetes.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of remembered tokens.
const REMEMBERED: usize = 4_096;

/// The options of the webhook authenticator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthenticationWebhook {
    /// Text of the configuration file, in the format of a kubeconfig
    /// (`--authentication-token-webhook-config-file`).
    pub config: String,
    /// Time for which the user of a token is remembered.
    pub cache_ttl: Duration,
}

impl AuthenticationWebhook {
    /// Returns the default options with this text of the configuration file.
    #[must_use]
    pub fn new(config: impl Into<String>) -> Self {
        Self {
            config: config.into(),
            cache_ttl: Duration::from_secs(2 * 60),
        }
    }
}

/// The user of a token and the audiences for which the token is valid, or the reason why the token
/// is refused. `None` as the reason means that the webhook does not know the token.
type Reviewed = Result<(Arc<Identity>, Vec<String>), Option<AuthenticationError>>;

/// A token, and the audiences for which it is reviewed.
type TokenKey = (String, Vec<String>);

/// The webhook authenticator, with the tokens that it remembers.
#[derive(Debug)]
pub(super) struct WebhookAuthenticator {
    webhook: Webhook,
    cache_ttl: Duration,
    /// Results, each until a time.
    remembered: Mutex<HashMap<TokenKey, (Instant, Reviewed)>>,
}

impl WebhookAuthenticator {
    pub(super) fn new(options: &AuthenticationWebhook) -> Result<Self, StartError> {
        Ok(Self {
            webhook: Webhook::new(&options.config, TIMEOUT)?,
            cache_ttl: options.cache_ttl,
            remembered: Mutex::default(),
        })
    }

    /// Returns the user of a token. `own` are the audiences of this server.
    pub(super) async fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        own: &[String],
    ) -> Reviewed {
        let key = (token.to_owned(), audiences.to_vec());
        let known = self.remembered.lock().get(&key).cloned();
        if let Some((_, reviewed)) = known.filter(|(until, _)| Instant::now() < *until) {
            return reviewed;
        }
        let review = json!({
            "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
            "spec": {"token": token, "audiences": audiences}, "status": {"user": {}},
        });
        let reviewed = match self.webhook.review(&review).await {
            Ok(review) => user(object::at(&review, &["status"]), audiences, own),
            Err(error) => {
                tracing::error!(error, "cannot ask the webhook authenticator");
                return Err(Some(AuthenticationError(error)));
            }
        };
        let now = Instant::now();
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, (now + self.cache_ttl, reviewed.clone()));
        reviewed
    }
}

/// Returns the user in the status of a TokenReview.
fn user(status: &Value, audiences: &[String], own: &[String]) -> Reviewed {
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if object::at(status, &["authenticated"]) != &json!(true) {
        return Err(match object::text(status, &["error"]) {
            "" => None,
            error => Some(AuthenticationError(error.to_owned())),
        });
    }
    // A webhook that does not know audiences checks the token for this server.
    let given = match texts(object::at(status, &["audiences"])) {
        given if given.is_empty() => own.to_vec(),
        given => given,
    };
    let common = given.into_iter().filter(|one| audiences.contains(one));
    let common: Vec<String> = common.collect();
    if common.is_empty() {
        return Err(None);
    }
    let user = object::at(status, &["user"]);
    let groups = texts(object::at(user, &["groups"]));
    let mut identity = Identity::authenticated(object::text(user, &["username"]), groups);
    object::text(user, &["uid"]).clone_into(&mut identity.uid);
    let extra = object::at(user, &["extra"])
        .as_object()
        .into_iter()
        .flatten();
    identity.extra = extra
        .map(|(key, values)| (key.clone(), texts(values)))
        .collect();
    Ok((Arc::new(identity), common))
}
