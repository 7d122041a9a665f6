//! The bounded record of requests and responses, without secrets.

mod redact;

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tower::BoxError;

use crate::RequestInfo;
use crate::transport::{HttpResponse, ResponseBody, boxed};

/// A recorded request and its outcome. Displayed in one line.
///
/// # Examples
/// ```
/// use opkit_client::{RecordedOutcome, Seam};
/// fn refusals(seam: &Seam) -> usize {
///     let refused = |outcome: &RecordedOutcome| matches!(outcome, RecordedOutcome::Response { code: 400.., .. });
///     seam.exchanges().iter().filter(|exchange| refused(&exchange.outcome)).count()
/// }
/// assert_eq!(refusals(&Seam::new()), 0);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// Number of the request. The first request has the number 1.
    pub number: u64,
    /// Time from the creation of the seam to the request.
    pub at: Duration,
    /// Verb, resource and object of the request.
    pub info: RequestInfo,
    /// Query of the URL.
    pub query: String,
    /// Request headers for content type, accepted types and encodings, and user agent.
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    pub body: RecordedBody,
    /// Outcome of the request.
    pub outcome: RecordedOutcome,
}

/// The outcome of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordedOutcome {
    /// There is no response yet.
    Pending,
    /// A response was received.
    Response {
        /// Status code.
        code: u16,
        /// Time from the request to the head of the response.
        after: Duration,
        /// Body of the response. Empty for watches, and until the caller has read or dropped the
        /// body.
        body: RecordedBody,
    },
    /// There was no response.
    Failed {
        /// Text of the error.
        error: String,
        /// Time from the request to the failure.
        after: Duration,
    },
}

/// The recorded beginning of a body, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedBody {
    /// First bytes of the body, up to the limit of the seam.
    pub bytes: Bytes,
    /// Length of the whole body, in bytes.
    pub length: u64,
    /// Whether secrets were removed. If a body that may contain secrets cannot be parsed, it is
    /// removed as a whole.
    pub redacted: bool,
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}", self.number, self.info.verb)?;
        if self.info.is_resource {
            write!(f, " {}", self.info.resource())?;
        } else {
            write!(f, " {}", self.info.path)?;
        }
        match (&self.info.namespace, &self.info.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}")?,
            (Some(one), None) | (None, Some(one)) => write!(f, " {one}")?,
            (None, None) => {}
        }
        match &self.outcome {
            RecordedOutcome::Pending => f.write_str(" ..."),
            RecordedOutcome::Response { code, .. } => write!(f, " -> {code}"),
            RecordedOutcome::Failed { error, .. } => write!(f, " -> {error}"),
        }
    }
}

/// The last requests and their responses. When the maximum number is reached, the oldest request is
/// removed.
#[derive(Clone)]
pub(super) struct Recorder {
    ring: Arc<Mutex<VecDeque<Exchange>>>,
    exchanges_max: usize,
    body_max: usize,
}

impl Recorder {
    pub(super) fn new(exchanges_max: usize, body_max: usize) -> Self {
        Self {
            ring: Arc::default(),
            exchanges_max,
            body_max,
        }
    }

    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.ring.lock().iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.ring.lock().clear();
    }

    pub(super) fn start(
        &self,
        number: u64,
        at: Duration,
        info: &RequestInfo,
        parts: &http::request::Parts,
        body: &Bytes,
    ) {
        let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let exchange = Exchange {
            number,
            at,
            info: info.clone(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: recorded_headers(&parts.headers),
            body: redact::recorded(info, body, length, self.body_max),
            outcome: RecordedOutcome::Pending,
        };
        let mut ring = self.ring.lock();
        if ring.len() >= self.exchanges_max {
            ring.pop_front();
        }
        if self.exchanges_max > 0 {
            ring.push_back(exchange);
        }
    }

    pub(super) fn failed(&self, number: u64, after: Duration, error: &BoxError) {
        let error = crate::one_line(error.as_ref());
        self.set_outcome(number, RecordedOutcome::Failed { error, after });
    }

    /// Records a response. The body of the returned response is recorded while the caller reads the
    /// body.
    pub(super) fn responded(
        &self,
        number: u64,
        after: Duration,
        info: &RequestInfo,
        response: HttpResponse,
    ) -> HttpResponse {
        let code = response.status().as_u16();
        let body = RecordedBody::default();
        self.set_outcome(number, RecordedOutcome::Response { code, after, body });
        if info.is_watch() || response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
            return response;
        }
        response.map(|body| {
            boxed(RecordingBody {
                body,
                kept: Vec::new(),
                length: 0,
                record: Some((self.clone(), number, info.clone())),
            })
        })
    }

    fn set_outcome(&self, number: u64, outcome: RecordedOutcome) {
        let mut ring = self.ring.lock();
        let exchange = ring.iter_mut().rev().find(|it| it.number == number);
        if let Some(exchange) = exchange {
            exchange.outcome = outcome;
        }
    }

    fn set_body(&self, number: u64, info: &RequestInfo, bytes: &[u8], length: u64) {
        let recorded = redact::recorded(info, bytes, length, self.body_max);
        let mut ring = self.ring.lock();
        let exchange = ring.iter_mut().rev().find(|it| it.number == number);
        if let Some(exchange) = exchange
            && let RecordedOutcome::Response { body, .. } = &mut exchange.outcome
        {
            *body = recorded;
        }
    }
}

fn recorded_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    [
        header::ACCEPT,
        header::ACCEPT_ENCODING,
        header::CONTENT_TYPE,
        header::USER_AGENT,
    ]
    .into_iter()
    .filter_map(|name| {
        let value = headers.get(&name)?.to_str().ok()?.to_owned();
        Some((name.as_str().to_owned(), value))
    })
    .collect()
}

/// A response body that records its beginning.
struct RecordingBody {
    body: ResponseBody,
    kept: Vec<u8>,
    length: u64,
    record: Option<(Recorder, u64, RequestInfo)>,
}

impl RecordingBody {
    fn end(&mut self) {
        if let Some((recorder, number, info)) = self.record.take() {
            recorder.set_body(number, &info, &self.kept, self.length);
        }
    }
}

impl Drop for RecordingBody {
    fn drop(&mut self) {
        self.end();
    }
}

impl Body for RecordingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some((recorder, ..))) = (frame.data_ref(), &self.record) {
                    let room = recorder.body_max.saturating_sub(self.kept.len());
                    let part = data.get(..room.min(data.len())).unwrap_or_default();
                    self.kept.extend_from_slice(part);
                    let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
                    self.length = self.length.saturating_add(length);
                }
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
