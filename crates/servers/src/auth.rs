//! Who may read the metrics: the API server is asked who somebody is (TokenReview) and what they
//! may do (SubjectAccessReview), as kube-rbac-proxy and controller-runtime's filter do, and with
//! their times of remembering.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};
use opkit_client::{RequestError, RestClient, one_line};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tracing::{debug, error};

use crate::listen::{Answer, text};

/// How long it is remembered who a token belongs to, or that it belongs to nobody.
const TOKENS: Duration = Duration::from_secs(60);
/// How long a permission is remembered.
const ALLOWED: Duration = Duration::from_secs(5 * 60);
/// How long a refusal is remembered: less, because somebody may be about to grant it.
const DENIED: Duration = Duration::from_secs(30);
/// How much of each is remembered.
const REMEMBERED: usize = 256;
/// How long the API server may take.
const ASK: Duration = Duration::from_secs(10);

/// Who a token belongs to, as the API server says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

/// Lets those pass who may.
#[derive(Debug)]
pub(crate) struct Guard {
    client: RestClient,
    origin: Instant,
    tokens: Mutex<Remembered<String, Option<User>>>,
    permissions: Mutex<Remembered<(User, Method, String), bool>>,
}

impl Guard {
    pub(crate) fn new(client: RestClient) -> Self {
        Self {
            client,
            origin: Instant::now(),
            tokens: Mutex::default(),
            permissions: Mutex::default(),
        }
    }

    /// Whether a request may pass; what to answer if not.
    pub(crate) async fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), Answer> {
        let unauthorized = || text(StatusCode::UNAUTHORIZED, "Unauthorized\n");
        let token = bearer(headers).ok_or_else(unauthorized)?;
        let user = match self.user(token).await {
            Ok(user) => user.ok_or_else(unauthorized)?,
            Err(error) => {
                error!(error = one_line(&error), "cannot tell who asks for {path}");
                return Err(broken("Authentication failed\n".to_owned()));
            }
        };
        let name = user.username.clone();
        match self.is_allowed(user, method, path).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                debug!(user = name, %method, path, "refused");
                let said = format!("Authorization denied for user {name}\n");
                Err(text(StatusCode::FORBIDDEN, said))
            }
            Err(error) => {
                let error = one_line(&error);
                error!(error, user = name, "cannot tell who may {method} {path}");
                Err(broken(format!("Authorization for user {name} failed\n")))
            }
        }
    }

    async fn user(&self, token: &str) -> Result<Option<User>, AskError> {
        let known = self.tokens.lock().get(self.origin.elapsed(), token);
        if let Some(user) = known {
            return Ok(user);
        }
        #[derive(Deserialize)]
        struct Review {
            #[serde(default)]
            status: Status,
        }
        #[derive(Deserialize, Default)]
        struct Status {
            #[serde(default)]
            authenticated: bool,
            user: Option<User>,
        }
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let Review { status } = self.ask(path, &review).await?;
        let user = status.user.filter(|_| status.authenticated);
        let mut tokens = self.tokens.lock();
        tokens.insert(
            self.origin.elapsed(),
            TOKENS,
            token.to_owned(),
            user.clone(),
        );
        Ok(user)
    }

    async fn is_allowed(&self, user: User, method: &Method, path: &str) -> Result<bool, AskError> {
        let key = (user, method.clone(), path.to_owned());
        let known = self.permissions.lock().get(self.origin.elapsed(), &key);
        if let Some(is_allowed) = known {
            return Ok(is_allowed);
        }
        #[derive(Deserialize)]
        struct Review {
            #[serde(default)]
            status: Status,
        }
        #[derive(Deserialize, Default)]
        struct Status {
            #[serde(default)]
            allowed: bool,
        }
        let User {
            username,
            uid,
            groups,
            extra,
        } = &key.0;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": username,
                "uid": uid,
                "groups": groups,
                "extra": extra,
                "nonResourceAttributes": {
                    "path": path,
                    "verb": method.as_str().to_lowercase(),
                },
            },
        });
        let at = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let Review { status } = self.ask(at, &review).await?;
        let time = if status.allowed { ALLOWED } else { DENIED };
        let mut permissions = self.permissions.lock();
        permissions.insert(self.origin.elapsed(), time, key, status.allowed);
        Ok(status.allowed)
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        review: &Value,
    ) -> Result<T, AskError> {
        let request = self.client.request(Method::POST, path).json(review);
        match timeout(ASK, request.typed()).await {
            Ok(answer) => answer.map_err(AskError::Request),
            Err(_) => Err(AskError::Late(ASK.as_secs())),
        }
    }
}

/// Why the API server could not be asked.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Request(RequestError),
    #[error("no answer within {0} s")]
    Late(u64),
}

/// The token of a request, if it has one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn broken(said: String) -> Answer {
    text(StatusCode::INTERNAL_SERVER_ERROR, said)
}

/// Answers that hold for a time. Synchronous, told the time. When it is full, what has run out is
/// forgotten, and if nothing has, all.
#[derive(Debug)]
struct Remembered<K, V> {
    /// Until when, and what.
    answers: HashMap<K, (Duration, V)>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self {
            answers: HashMap::new(),
        }
    }
}

impl<K: Hash + Eq, V: Clone> Remembered<K, V> {
    fn get<Q: Hash + Eq + ?Sized>(&self, now: Duration, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let (until, value) = self.answers.get(key)?;
        (now < *until).then(|| value.clone())
    }

    fn insert(&mut self, now: Duration, time: Duration, key: K, value: V) {
        if self.answers.len() >= REMEMBERED {
            self.answers.retain(|_, (until, _)| now < *until);
            if self.answers.len() >= REMEMBERED {
                self.answers.clear();
            }
        }
        self.answers.insert(key, (now.saturating_add(time), value));
    }
}

#[cfg(test)]
mod tests;
