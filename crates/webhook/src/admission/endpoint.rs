//! From the body of a request to the body of the response: the part of an admission webhook that
//! does not depend on the Rust type of the object.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_client::Kind;
use tracing::{error, warn};

use super::request::Operation;
use super::review::{self, ParsedReview};
use super::{Admission, Subject};
use crate::builder::FailurePolicy;
use crate::handler::{Call, ErasedHandler};
use crate::patch;

/// Maximum size of the body of an `AdmissionReview`, as in controller-runtime: two objects of at
/// most 3 MiB, and 1 MiB for the rest of the request.
pub(crate) const ADMISSION_MAX_BYTES: usize = 7 * 1024 * 1024;

/// Functions of one webhook, without the type of their object.
pub(crate) trait Decide: Send + Sync + 'static {
    /// Decodes the objects, calls the functions and returns their decision.
    fn decide(
        &self,
        review: Arc<ParsedReview>,
        call: Call,
    ) -> BoxFuture<'static, Result<Decision, Failure>>;
}

/// Decision about a request.
#[derive(Debug, Default)]
pub(crate) struct Decision {
    pub(crate) admission: Admission,
    /// Object before and after the functions were called, as JSON, if it changed.
    pub(crate) change: Option<(Vec<u8>, Vec<u8>)>,
}

/// Reason why there is no decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The objects of the request cannot be decoded.
    BadRequest(String),
    /// A function returned an error.
    Error(String),
    /// A function panicked.
    Panic(String),
    /// The functions took longer than the API server waits.
    TimedOut,
}

/// One path of the webhook server that serves admission requests.
pub(crate) struct AdmissionEndpoint {
    /// Name of the webhook in its configuration.
    pub(crate) name: String,
    /// Expected kind of the objects.
    pub(crate) kind: Kind,
    pub(crate) failure_policy: FailurePolicy,
    /// Whether updates of objects that are being deleted are decided too.
    pub(crate) while_deleting: bool,
    pub(crate) decide: Arc<dyn Decide>,
}

impl fmt::Debug for AdmissionEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionEndpoint")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl ErasedHandler for AdmissionEndpoint {
    fn max_bytes(&self) -> usize {
        ADMISSION_MAX_BYTES
    }

    fn refuse(&self, code: u16, message: &str) -> Bytes {
        review::refuse(code, message)
    }

    fn handle(self: Arc<Self>, body: Bytes, call: Call) -> BoxFuture<'static, Bytes> {
        async move {
            let review = match review::parse(&body) {
                Ok(review) => Arc::new(review),
                Err(problem) => {
                    warn!(webhook = self.name, problem, "refused a bad request");
                    return review::refuse(400, &problem);
                }
            };
            drop(body);
            self.respond(&review, call).await
        }
        .boxed()
    }
}

impl AdmissionEndpoint {
    async fn respond(&self, review: &Arc<ParsedReview>, call: Call) -> Bytes {
        let decided = match self.passes_unseen(review) {
            true => Ok(Decision::default()),
            false => match self.check_kind(review) {
                Ok(()) => self.decide(review, call).await,
                Err(failure) => Err(failure),
            },
        };
        let decided = decided.and_then(|decision| Ok((patch_of(review, &decision)?, decision)));
        match decided {
            Ok((patch, decision)) => review::respond(review, &decision.admission, &patch),
            Err(failure) => review::respond(review, &self.failed(review, &failure), &[]),
        }
    }

    /// Reports whether the request is an update of an object that is being deleted. Such an update
    /// passes by default, because otherwise an object that has become invalid could not get rid of
    /// its finalizers.
    fn passes_unseen(&self, review: &ParsedReview) -> bool {
        let is_update = review.attributes.operation == Operation::Update;
        let object = review
            .object
            .as_ref()
            .filter(|_| is_update && !self.while_deleting);
        object.is_some_and(|object| review::is_deleting(object))
    }

    fn check_kind(&self, review: &ParsedReview) -> Result<(), Failure> {
        let (sent, expected) = (&review.attributes.kind, self.kind.group_version_kind());
        match *sent == expected {
            true => Ok(()),
            false => Err(Failure::BadRequest(format!(
                "the webhook {} is for {}, the request is for {}",
                self.name, self.kind, sent
            ))),
        }
    }

    async fn decide(&self, review: &Arc<ParsedReview>, call: Call) -> Result<Decision, Failure> {
        let panics = call.metrics.clone();
        let time = call.timeout;
        // The functions are called inside of the future, so that their panics are caught too.
        let (decide, review) = (self.decide.clone(), review.clone());
        let decided = async move { decide.decide(review, call).await };
        let decided = AssertUnwindSafe(decided).catch_unwind();
        match tokio::time::timeout(time, decided).await {
            Ok(Ok(decided)) => decided,
            Ok(Err(panic)) => {
                panics.count_panic();
                Err(Failure::Panic(panic_text(&*panic)))
            }
            Err(_) => Err(Failure::TimedOut),
        }
    }

    /// Returns the response to a request that could not be decided, by the failure policy, and logs
    /// the failure.
    fn failed(&self, review: &ParsedReview, failure: &Failure) -> Admission {
        let (code, reason, message) = match failure {
            Failure::BadRequest(problem) => {
                warn!(webhook = self.name, problem, "refused a bad request");
                return Admission::refused(400, "BadRequest", problem);
            }
            Failure::Error(error) => (500, "InternalError", error.clone()),
            Failure::Panic(text) => (500, "InternalError", format!("panic: {text} [recovered]")),
            Failure::TimedOut => (504, "Timeout", "the webhook took too long".to_owned()),
        };
        let subject = Subject {
            group: &review.attributes.kind.group,
            kind: &review.attributes.kind.kind,
            name: &review.attributes.name,
        };
        error!(
            webhook = self.name,
            kind = subject.kind,
            namespace = review.attributes.namespace,
            name = subject.name,
            message,
            "the webhook failed"
        );
        match self.failure_policy {
            FailurePolicy::Fail => Admission::refused(code, reason, message),
            FailurePolicy::Ignore => {
                let mut admission = Admission::allowed();
                admission.warn(format!("the webhook {} failed: {message}", self.name));
                admission
            }
        }
    }
}

/// Returns the operations that carry the change of the decoded object over into the object of the
/// request.
fn patch_of(review: &ParsedReview, decision: &Decision) -> Result<Vec<serde_json::Value>, Failure> {
    let (Some((before, after)), Some(raw)) = (&decision.change, &review.object) else {
        return Ok(Vec::new());
    };
    if !decision.admission.is_allowed() {
        return Ok(Vec::new());
    }
    patch::patch(before, after, raw).map_err(|error| Failure::Error(error.to_string()))
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
