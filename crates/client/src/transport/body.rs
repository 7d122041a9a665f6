//! The body of an answer, and one that says when it has ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower::BoxError;

/// An answer, whatever service gave it.
pub(crate) type Answer = http::Response<AnswerBody>;

/// The body of an answer, whatever service gave it.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Forgets the type of a body.
pub(crate) fn boxed<B>(body: B) -> AnswerBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// A body that calls a function with its length once, when it has ended or is dropped.
pub(crate) struct TailedBody<F: FnOnce(u64)> {
    body: AnswerBody,
    bytes: u64,
    tail: Option<F>,
}

impl<F: FnOnce(u64)> TailedBody<F> {
    pub(crate) fn new(body: AnswerBody, tail: F) -> Self {
        Self {
            body,
            bytes: 0,
            tail: Some(tail),
        }
    }

    fn end(&mut self) {
        if let Some(tail) = self.tail.take() {
            tail(self.bytes);
        }
    }
}

impl<F: FnOnce(u64)> Drop for TailedBody<F> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<F: FnOnce(u64) + Unpin> Body for TailedBody<F> {
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
