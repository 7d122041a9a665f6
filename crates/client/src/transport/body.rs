//! The body type of all responses, and a body that calls a function when it ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower::BoxError;

/// A response of any service, with its body boxed.
pub(crate) type HttpResponse = http::Response<ResponseBody>;

/// The boxed body of a response of any service.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Boxes a body.
pub(crate) fn boxed<B>(body: B) -> ResponseBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// A body that calls a function once, when the body ends or is dropped. The function gets the
/// number of bytes that were read.
pub(crate) struct OnEndBody<F: FnOnce(u64)> {
    body: ResponseBody,
    bytes: u64,
    on_end: Option<F>,
}

impl<F: FnOnce(u64)> OnEndBody<F> {
    pub(crate) fn new(body: ResponseBody, on_end: F) -> Self {
        Self {
            body,
            bytes: 0,
            on_end: Some(on_end),
        }
    }

    fn end(&mut self) {
        if let Some(on_end) = self.on_end.take() {
            on_end(self.bytes);
        }
    }
}

impl<F: FnOnce(u64)> Drop for OnEndBody<F> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<F: FnOnce(u64) + Unpin> Body for OnEndBody<F> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, |data| data.len());
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                self.bytes = self.bytes.saturating_add(length);
            }
            Poll::Ready(_) => self.end(),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
