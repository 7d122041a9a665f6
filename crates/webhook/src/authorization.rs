//! Authorization webhooks: the API server asks whether a user may do something, with a
//! `SubjectAccessReview`.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;
use opkit_controller::{Error, ReadDeclarations};
use serde_json::{Value, json};

use crate::WebhookContext;
use crate::admission::review::write;
use crate::handler::{Call, ErasedHandler};
use crate::review::{ReviewKind, ReviewMessage};

/// Maximum size of the body of a `SubjectAccessReview`, which contains names only.
const ACCESS_REVIEW_MAX_BYTES: usize = 1024 * 1024;

const ACCESS_REVIEW: ReviewKind = ReviewKind {
    kind: "SubjectAccessReview",
    versions: ["authorization.k8s.io/v1", "authorization.k8s.io/v1beta1"],
};

/// Decision of an authorization webhook about a request.
///
/// # Examples
/// ```
/// # use opkit_webhook as opkit;
/// use opkit::Authorization;
/// assert!(Authorization::allowed().is_allowed());
/// assert!(!Authorization::no_opinion("jane is not known here").is_allowed());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    allowed: bool,
    denied: bool,
    reason: Option<String>,
    error: Option<String>,
}

impl Authorization {
    /// Allows the request.
    pub fn allowed() -> Self {
        Self {
            allowed: true,
            denied: false,
            reason: None,
            error: None,
        }
    }

    /// Leaves the decision to the other authorizers. If none allows the request, it is refused.
    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Self {
            allowed: false,
            reason: Some(reason.into()),
            ..Self::allowed()
        }
    }

    /// Refuses the request; the other authorizers are not asked.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self {
            denied: true,
            ..Self::no_opinion(reason)
        }
    }

    /// Reports whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Reports whether the request is refused whatever other authorizers decide.
    pub fn is_denied(&self) -> bool {
        self.denied
    }

    /// Returns the reason of the decision.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// The decision if the webhook failed: the other authorizers decide.
    fn failed(error: impl Into<String>) -> Self {
        Self {
            allowed: false,
            error: Some(error.into()),
            ..Self::allowed()
        }
    }

    fn status(&self) -> Value {
        let mut status = json!({"allowed": self.allowed});
        let fields = [
            ("denied", self.denied.then_some(Value::Bool(true))),
            ("reason", self.reason.as_ref().map(|reason| json!(reason))),
            (
                "evaluationError",
                self.error.as_ref().map(|error| json!(error)),
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

type Decide = dyn Fn(
        SubjectAccessReviewSpec,
        WebhookContext<()>,
    ) -> BoxFuture<'static, Result<Authorization, Error>>
    + Send
    + Sync;

/// Authorization webhook: an `async fn(SubjectAccessReviewSpec, WebhookContext<S>) ->
/// Result<Authorization>`, served at [`PATH`](Self::PATH). If the function returns an error or
/// panics, the other authorizers decide.
#[derive(Clone)]
pub struct AuthorizationWebhook {
    decide: Arc<Decide>,
    reads: ReadDeclarations,
}

impl fmt::Debug for AuthorizationWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationWebhook")
            .finish_non_exhaustive()
    }
}

impl AuthorizationWebhook {
    /// Path that the webhook is served at.
    pub const PATH: &'static str = "/authorize";

    /// Creates a webhook of a function.
    pub fn new<F, Fut, S, E>(function: F) -> Self
    where
        F: Fn(SubjectAccessReviewSpec, WebhookContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Authorization, E>> + Send + 'static,
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

    async fn respond(
        &self,
        review: &ReviewMessage<SubjectAccessReviewSpec>,
        call: Call,
    ) -> Authorization {
        let context = WebhookContext::new(call.services.clone(), None);
        let (decide, spec) = (self.decide.clone(), review.spec.clone());
        let decided = call.decide(Self::PATH, async move { decide(spec, context).await });
        decided.await.unwrap_or_else(Authorization::failed)
    }
}

impl ErasedHandler for AuthorizationWebhook {
    fn max_bytes(&self) -> usize {
        ACCESS_REVIEW_MAX_BYTES
    }

    fn refuse(&self, _: u16, message: &str) -> Bytes {
        let status = Authorization::failed(message).status();
        write(&ACCESS_REVIEW.response(None, "", &status))
    }

    fn handle(self: Arc<Self>, body: Bytes, call: Call) -> BoxFuture<'static, Bytes> {
        async move {
            let review = match ACCESS_REVIEW.parse(&body) {
                Ok(review) => review,
                Err(problem) => return self.refuse(400, &problem),
            };
            let status = self.respond(&review, call).await.status();
            write(&ACCESS_REVIEW.response(Some(review.api_version), &review.uid, &status))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
