//! The conversion webhook: the API server asks for objects in another version, with a
//! `ConversionReview`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::admission::review::write;
use crate::handler::{Call, ErasedHandler};

/// Maximum size of the body of a `ConversionReview`. The API server sends all objects of a list in
/// one request, so this is larger than for admission.
pub(crate) const CONVERSION_MAX_BYTES: usize = 64 * 1024 * 1024;

type Convert = dyn Fn(&[u8]) -> Vec<u8> + Send + Sync;

/// Conversion webhook: a function from the body of a `ConversionReview` to the body of the
/// response, served at [`PATH`](Self::PATH). The function does no I/O and cannot fail: a request
/// that is not valid gets a response with the reason.
#[derive(Clone)]
pub struct ConversionWebhook {
    convert: Arc<Convert>,
}

impl fmt::Debug for ConversionWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversionWebhook").finish_non_exhaustive()
    }
}

impl ConversionWebhook {
    /// Path that the webhook is served at.
    pub const PATH: &'static str = "/convert";

    /// Creates a webhook of a function.
    pub fn new(convert: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self {
            convert: Arc::new(convert),
        }
    }
}

impl ErasedHandler for ConversionWebhook {
    fn max_bytes(&self) -> usize {
        CONVERSION_MAX_BYTES
    }

    fn refuse(&self, code: u16, message: &str) -> Bytes {
        failure("", code, message)
    }

    fn handle(self: Arc<Self>, body: Bytes, call: Call) -> BoxFuture<'static, Bytes> {
        async move {
            let request = body.clone();
            // A list may have many objects, whose conversion takes too long for a runtime thread.
            let converted = tokio::task::spawn_blocking(move || (self.convert)(&request));
            match converted.await {
                Ok(converted) => converted.into(),
                Err(error) => {
                    call.metrics.count_conversion_panic();
                    tracing::error!(%error, "the conversion webhook panicked");
                    failure(&uid_of(&body), 500, "the conversion panicked")
                }
            }
        }
        .boxed()
    }
}

/// Returns the response of a failed conversion.
fn failure(uid: &str, code: u16, message: &str) -> Bytes {
    write(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {
            "uid": uid, "convertedObjects": [],
            "result": {"status": "Failure", "code": code, "message": message},
        },
    }))
}

/// Returns the UID of the request in the body of a `ConversionReview`; empty if it has none.
fn uid_of(body: &[u8]) -> String {
    #[derive(Deserialize, Default)]
    struct Review {
        request: Request,
    }
    #[derive(Deserialize, Default)]
    struct Request {
        uid: String,
    }
    let review: Review = serde_json::from_slice(body).unwrap_or_default();
    review.request.uid
}

#[cfg(test)]
mod tests;
