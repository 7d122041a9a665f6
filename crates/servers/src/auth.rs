//! Access control of the metrics server. The API server authenticates the token of a request
//! (TokenReview) and authorizes its user (SubjectAccessReview). kube-rbac-proxy and the filter of
//! controller-runtime do the same and cache the results for the same times.

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

use crate::listen::{HttpResponse, text};

/// Time for which the result of a TokenReview is cached.
const TOKEN_TTL: Duration = Duration::from_secs(60);
/// Time for which a granted permission is cached.
const ALLOWED_TTL: Duration = Duration::from_secs(5 * 60);
/// Time for which a denied permission is cached; short, because the permission may be granted soon.
const DENIED_TTL: Duration = Duration::from_secs(30);
/// Maximum number of entries in the cache of users, and in the cache of permissions. It bounds the
/// memory.
const CACHE_CAPACITY: usize = 256;
/// Time limit of one request to the API server.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// User of a token, as in the status of a TokenReview.
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

/// Filter that lets only authorized requests pass.
#[derive(Debug)]
pub(crate) struct AuthFilter {
    client: RestClient,
    /// Instant from which the times in the caches are counted.
    origin: Instant,
    /// Users by token; `None` for a token that is not valid.
    users: Mutex<TtlCache<String, Option<User>>>,
    /// Permissions: whether a user may send a method to a path.
    permissions: Mutex<TtlCache<(User, Method, String), bool>>,
}

impl AuthFilter {
    pub(crate) fn new(client: RestClient) -> Self {
        Self {
            client,
            origin: Instant::now(),
            users: Mutex::default(),
            permissions: Mutex::default(),
        }
    }

    /// Checks whether a request may pass. The error is the response to a request that may not pass.
    pub(crate) async fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), HttpResponse> {
        let unauthorized = || text(StatusCode::UNAUTHORIZED, "Unauthorized\n");
        let token = bearer(headers).ok_or_else(unauthorized)?;
        let user = match self.user(token).await {
            Ok(user) => user.ok_or_else(unauthorized)?,
            Err(error) => {
                error!(
                    error = one_line(&error),
                    "cannot authenticate a request for {path}"
                );
                return Err(internal_error("Authentication failed\n".to_owned()));
            }
        };
        let name = user.username.clone();
        match self.is_allowed(user, method, path).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                debug!(user = name, %method, path, "request denied");
                let body = format!("Authorization denied for user {name}\n");
                Err(text(StatusCode::FORBIDDEN, body))
            }
            Err(error) => {
                let error = one_line(&error);
                error!(error, user = name, "cannot authorize {method} {path}");
                Err(internal_error(format!(
                    "Authorization for user {name} failed\n"
                )))
            }
        }
    }

    /// Returns the user of a token, or `None` if the token is not valid.
    async fn user(&self, token: &str) -> Result<Option<User>, ReviewError> {
        let cached = self.users.lock().get(self.origin.elapsed(), token);
        if let Some(user) = cached {
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
        let Review { status } = self.review(path, &review).await?;
        let user = status.user.filter(|_| status.authenticated);
        let mut users = self.users.lock();
        users.insert(
            self.origin.elapsed(),
            TOKEN_TTL,
            token.to_owned(),
            user.clone(),
        );
        Ok(user)
    }

    /// Reports whether the user may send `method` to `path`.
    async fn is_allowed(
        &self,
        user: User,
        method: &Method,
        path: &str,
    ) -> Result<bool, ReviewError> {
        let key = (user, method.clone(), path.to_owned());
        let cached = self.permissions.lock().get(self.origin.elapsed(), &key);
        if let Some(is_allowed) = cached {
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
        let url = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let Review { status } = self.review(url, &review).await?;
        let ttl = if status.allowed {
            ALLOWED_TTL
        } else {
            DENIED_TTL
        };
        let mut permissions = self.permissions.lock();
        permissions.insert(self.origin.elapsed(), ttl, key, status.allowed);
        Ok(status.allowed)
    }

    /// Creates a TokenReview or SubjectAccessReview at `path`, and returns the review with its
    /// result.
    async fn review<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        review: &Value,
    ) -> Result<T, ReviewError> {
        let request = self.client.request(Method::POST, path).json(review);
        match timeout(REVIEW_TIMEOUT, request.typed()).await {
            Ok(response) => response.map_err(ReviewError::Request),
            Err(_) => Err(ReviewError::Timeout(REVIEW_TIMEOUT.as_secs())),
        }
    }
}

/// Error of a review request.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error(transparent)]
    Request(RequestError),
    #[error("no response within {0} s")]
    Timeout(u64),
}

/// Returns the bearer token of a request, or `None` if the request has no bearer token.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn internal_error(body: String) -> HttpResponse {
    text(StatusCode::INTERNAL_SERVER_ERROR, body)
}

/// Cache whose entries expire. Its methods take the current time as an argument. A full cache
/// removes the expired entries, or all entries if none has expired.
#[derive(Debug)]
struct TtlCache<K, V> {
    /// Values, each with the time of its expiry.
    entries: HashMap<K, (Duration, V)>,
}

impl<K, V> Default for TtlCache<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }
}

impl<K: Hash + Eq, V: Clone> TtlCache<K, V> {
    /// Returns the value of `key` if it is in the cache and has not expired.
    fn get<Q: Hash + Eq + ?Sized>(&self, now: Duration, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let (expires, value) = self.entries.get(key)?;
        (now < *expires).then(|| value.clone())
    }

    /// Inserts a value that expires after `ttl`.
    fn insert(&mut self, now: Duration, ttl: Duration, key: K, value: V) {
        if self.entries.len() >= CACHE_CAPACITY {
            self.entries.retain(|_, (expires, _)| now < *expires);
            if self.entries.len() >= CACHE_CAPACITY {
                self.entries.clear();
            }
        }
        self.entries.insert(key, (now.saturating_add(ttl), value));
    }
}

#[cfg(test)]
mod tests;
