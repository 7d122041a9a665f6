//! What is kept of requests and answers: bounded, without secrets.

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
use crate::transport::{Answer, AnswerBody, boxed};

/// A request and what became of it. Its `Display` is one line.
///
/// # Examples
/// ```
/// use opkit_client::{RecordedOutcome, Seam};
/// fn refusals(seam: &Seam) -> usize {
///     let refused = |outcome: &RecordedOutcome| matches!(outcome, RecordedOutcome::Answered { code: 400.., .. });
///     seam.exchanges().iter().filter(|exchange| refused(&exchange.outcome)).count()
/// }
/// assert_eq!(refusals(&Seam::new()), 0);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// Its number, from 1 on.
    pub number: u64,
    /// When it was sent, since the making of the seam.
    pub at: Duration,
    /// What it asked for.
    pub info: RequestInfo,
    /// The query of its URL.
    pub query: String,
    /// Its headers that say something about it: content negotiation, encoding, user agent.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: RecordedBody,
    /// What came of it.
    pub outcome: RecordedOutcome,
}

/// What came of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordedOutcome {
    /// It is under way.
    Pending,
    /// An answer began.
    Answered {
        /// Its status code.
        code: u16,
        /// How long until then.
        after: Duration,
        /// Its body, once it has been read to the end; that of a watch is not kept.
        body: RecordedBody,
    },
    /// No answer came.
    Failed {
        /// Why.
        error: String,
        /// How long until then.
        after: Duration,
    },
}

/// A body as it is kept: its beginning, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedBody {
    /// What is kept.
    pub bytes: Bytes,
    /// How long it was.
    pub length: u64,
    /// Whether secrets were blacked out, or the whole of it because it might hold some.
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
            RecordedOutcome::Answered { code, .. } => write!(f, " -> {code}"),
            RecordedOutcome::Failed { error, .. } => write!(f, " -> {error}"),
        }
    }
}

/// The last exchanges; the oldest goes when there is no room.
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

    pub(super) fn begin(
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
            headers: telling(&parts.headers),
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
        self.settle(number, RecordedOutcome::Failed { error, after });
    }

    /// Notes the answer, and its body as it is read.
    pub(super) fn answered(
        &self,
        number: u64,
        after: Duration,
        info: &RequestInfo,
        answer: Answer,
    ) -> Answer {
        let code = answer.status().as_u16();
        let body = RecordedBody::default();
        self.settle(number, RecordedOutcome::Answered { code, after, body });
        if info.is_watch() || answer.status() == http::StatusCode::SWITCHING_PROTOCOLS {
            return answer;
        }
        answer.map(|body| {
            boxed(Listening {
                body,
                kept: Vec::new(),
                length: 0,
                of: Some((self.clone(), number, info.clone())),
            })
        })
    }

    fn settle(&self, number: u64, outcome: RecordedOutcome) {
        let mut ring = self.ring.lock();
        let exchange = ring.iter_mut().rev().find(|it| it.number == number);
        if let Some(exchange) = exchange {
            exchange.outcome = outcome;
        }
    }

    fn read(&self, number: u64, info: &RequestInfo, bytes: &[u8], length: u64) {
        let recorded = redact::recorded(info, bytes, length, self.body_max);
        let mut ring = self.ring.lock();
        let exchange = ring.iter_mut().rev().find(|it| it.number == number);
        if let Some(exchange) = exchange
            && let RecordedOutcome::Answered { body, .. } = &mut exchange.outcome
        {
            *body = recorded;
        }
    }
}

fn telling(headers: &HeaderMap) -> Vec<(String, String)> {
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

/// A body of which the beginning is kept.
struct Listening {
    body: AnswerBody,
    kept: Vec<u8>,
    length: u64,
    of: Option<(Recorder, u64, RequestInfo)>,
}

impl Listening {
    fn end(&mut self) {
        if let Some((recorder, number, info)) = self.of.take() {
            recorder.read(number, &info, &self.kept, self.length);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

impl Body for Listening {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some((recorder, ..))) = (frame.data_ref(), &self.of) {
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
