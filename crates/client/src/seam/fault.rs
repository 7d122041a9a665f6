//! Errors and responses of injected faults.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header;
use http_body::{Body, Frame};
use kube::core::Status;
use tower::BoxError;

use crate::transport::{HttpResponse, ResponseBody, boxed};

/// The error of [`Effect::Refuse`](super::Effect::Refuse).
#[derive(Debug, thiserror::Error)]
#[error("connection refused by a rule of the effect seam")]
pub(crate) struct Refused;

/// The error of [`Effect::DropResponse`](super::Effect::DropResponse) and
/// [`Effect::CutResponse`](super::Effect::CutResponse).
#[derive(Debug, thiserror::Error)]
#[error("response dropped by a rule of the effect seam")]
pub(crate) struct Dropped;

/// Builds the response of a server that rejects a request with `status`.
pub(super) fn status_response(status: &Status) -> Result<HttpResponse, BoxError> {
    let mut body = serde_json::to_value(status)?;
    if let Some(body) = body.as_object_mut() {
        body.insert("apiVersion".to_owned(), "v1".into());
        body.insert("kind".to_owned(), "Status".into());
    }
    let mut response = json(status.code, &body)?;
    let retry_after = status.details.as_ref().map(|it| it.retry_after_seconds);
    if let Some(seconds) = retry_after.filter(|seconds| *seconds > 0) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    Ok(response)
}

/// Builds a response with a JSON body.
pub(super) fn json(code: u16, body: &serde_json::Value) -> Result<HttpResponse, BoxError> {
    let body = Bytes::from(serde_json::to_vec(body)?);
    let response = http::Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, "application/json")
        .body(boxed(http_body_util::Full::new(body)))?;
    Ok(response)
}

/// A body that fails after a number of bytes.
pub(super) struct CutBody {
    body: ResponseBody,
    left: u64,
}

impl CutBody {
    pub(super) fn new(body: ResponseBody, left: u64) -> Self {
        Self { body, left }
    }
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.left == 0 {
            return Poll::Ready(Some(Err(Dropped.into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Poll::Ready(Some(Ok(frame))) = polled else {
            return polled;
        };
        Poll::Ready(Some(Ok(frame.map_data(|mut data| {
            let left = usize::try_from(self.left).unwrap_or(usize::MAX);
            data.truncate(left);
            let taken = u64::try_from(data.len()).unwrap_or(u64::MAX);
            self.left = self.left.saturating_sub(taken);
            data
        }))))
    }
}
