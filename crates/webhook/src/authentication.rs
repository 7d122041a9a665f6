//! Authentication webhooks: the API server asks whether a bearer token is valid, with a
//! `TokenReview`.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, UserInfo};
use opkit_controller::{Error, ReadDeclarations};
use serde_json::{Value, json};

use crate::WebhookContext;
use crate::admission::review::write;
use crate::handler::{Call, ErasedHandler};
use crate::review::{ReviewKind, ReviewMessage};

/// Maximum size of the body of a `TokenReview`, as in controller-runtime. A token has a few
/// kilobytes.
const TOKEN_REVIEW_MAX_BYTES: usize = 1024 * 1024;

const TOKEN_REVIEW: ReviewKind = ReviewKind {
    kind: "TokenReview",
    versions: ["authentication.k8s.io/v1", "authentication.k8s.io/v1beta1"],
};

/// Decision of an authentication webhook about a token.
///
/// # Examples
/// ```
/// # use opkit_webhook as opkit;
/// use opkit::Authentication;
/// let user = Authentication::authenticated("jane").group("developers");
/// assert!(user.is_authenticated());
/// assert!(!Authentication::unauthenticated("the token has expired").is_authenticated());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Authentication {
    user: Option<UserInfo>,
    audiences: Vec<String>,
    error: Option<String>,
}

impl Authentication {
    /// The token is valid, and belongs to this user.
    pub fn authenticated(username: impl Into<String>) -> Self {
        Self::user(UserInfo {
            username: Some(username.into()),
            ..UserInfo::default()
        })
    }

    /// The token is valid, and belongs to this user with a UID, groups and extra information.
    pub fn user(user: UserInfo) -> Self {
        Self {
            user: Some(user),
            audiences: Vec::new(),
            error: None,
        }
    }

    /// The token is not valid. The API server asks its other authenticators.
    pub fn unauthenticated(reason: impl Into<String>) -> Self {
        Self {
            user: None,
            audiences: Vec::new(),
            error: Some(reason.into()),
        }
    }

    /// Adds a group of the user.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        if let Some(user) = &mut self.user {
            user.groups.get_or_insert_default().push(group.into());
        }
        self
    }

    /// Adds an audience of the token. It must be one of the audiences of the request.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Reports whether the token is valid.
    pub fn is_authenticated(&self) -> bool {
        self.user.is_some()
    }

    fn status(&self) -> Value {
        let mut status = json!({"authenticated": self.is_authenticated(), "user": {}});
        let fields = [
            ("user", self.user.as_ref().map(|user| json!(user))),
            ("error", self.error.as_ref().map(|error| json!(error))),
            (
                "audiences",
                (!self.audiences.is_empty()).then(|| json!(self.audiences)),
            ),
        ];
        for (field, value) in fields {
            if let (Some(value), Some(status)) = (value, status.as_object_mut()) {
                status.insert(field.to_owned(), value);
            }
        }
        status
    }
}

type Decide = dyn Fn(TokenReviewSpec, WebhookContext<()>) -> BoxFuture<'static, Result<Authentication, Error>>
    + Send
    + Sync;

/// Authentication webhook: an `async fn(TokenReviewSpec, WebhookContext<S>) ->
/// Result<Authentication>`, served at [`PATH`](Self::PATH).
#[derive(Clone)]
pub struct AuthenticationWebhook {
    decide: Arc<Decide>,
    reads: ReadDeclarations,
}

impl fmt::Debug for AuthenticationWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticationWebhook")
            .finish_non_exhaustive()
    }
}

impl AuthenticationWebhook {
    /// Path that the webhook is served at.
    pub const PATH: &'static str = "/authenticate";

    /// Creates a webhook of a function.
    pub fn new<F, Fut, S, E>(function: F) -> Self
    where
        F: Fn(TokenReviewSpec, WebhookContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Authentication, E>> + Send + 'static,
        S: Send + Sync + 'static,
        E: Into<Error> + 'static,
    {
        let mut reads = ReadDeclarations::default();
        reads.state::<S>();
        Self {
            decide: Arc::new(move |spec, context| {
                let decided = context.typed::<S>().map(|context| function(spec, context));
                async move { decided?.await.map_err(Into::into) }.boxed()
            }),
            reads,
        }
    }

    /// Returns the states that the function reads.
    pub fn reads(&self) -> &ReadDeclarations {
        &self.reads
    }

    async fn respond(&self, review: &ReviewMessage<TokenReviewSpec>, call: Call) -> Authentication {
        if review.spec.token.is_empty() {
            return Authentication::unauthenticated("token is empty");
        }
        let context = WebhookContext::new(call.services.clone(), None);
        let (decide, spec) = (self.decide.clone(), review.spec.clone());
        let decided = call.decide(Self::PATH, async move { decide(spec, context).await });
        decided
            .await
            .unwrap_or_else(Authentication::unauthenticated)
    }
}

impl ErasedHandler for AuthenticationWebhook {
    fn max_bytes(&self) -> usize {
        TOKEN_REVIEW_MAX_BYTES
    }

    fn refuse(&self, _: u16, message: &str) -> Bytes {
        let status = Authentication::unauthenticated(message).status();
        write(&TOKEN_REVIEW.response(None, "", &status))
    }

    fn handle(self: Arc<Self>, body: Bytes, call: Call) -> BoxFuture<'static, Bytes> {
        async move {
            let review = match TOKEN_REVIEW.parse(&body) {
                Ok(review) => review,
                Err(problem) => return self.refuse(400, &problem),
            };
            let status = self.respond(&review, call).await.status();
            write(&TOKEN_REVIEW.response(Some(review.api_version), &review.uid, &status))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
