//! Faults: requests that fail or conflict, and watches that break, at random and repeatable by a
//! seed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use opkit::client::RequestInfo;
use opkit_random::Random;
use parking_lot::Mutex;
use serde_json::json;

/// Percentage of writes that fail.
const FAILS: u64 = 5;
/// Percentage of writes that conflict.
const CONFLICTS: u64 = 5;

/// Faults between an operator and its server.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    dice: Arc<Mutex<Random>>,
    watches: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
    conflicts: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
}

type ResponseBody = UnsyncBoxBody<bytes::Bytes, kube::Error>;

/// Fate of a write.
enum Fate {
    Passes,
    /// The request does not reach the server.
    Fails,
    /// The request reaches the server, and the response is lost.
    IsLost,
    Conflicts,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            dice: Arc::new(Mutex::new(Random::new(seed))),
            watches: Arc::default(),
            failed: Arc::default(),
            conflicts: Arc::default(),
            cut: Arc::default(),
        }
    }

    /// Returns the number of open watches.
    pub(crate) fn watches(&self) -> usize {
        self.watches.load(SeqCst)
    }

    /// Returns the numbers of failed writes, of conflicts and of broken watches.
    pub(crate) fn count(&self) -> (usize, usize, usize) {
        (
            self.failed.load(SeqCst),
            self.conflicts.load(SeqCst),
            self.cut.load(SeqCst),
        )
    }

    /// Returns a client whose requests meet the faults.
    pub(crate) fn around(&self, client: kube::Client) -> kube::Client {
        let (faults, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, client) = (faults.clone(), client.clone());
            async move { faults.send(client, request).await }
        });
        kube::Client::new(service, namespace)
    }

    async fn send(
        self,
        client: kube::Client,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, kube::Error> {
        let info = RequestInfo::of(&request);
        if info.is_watch() {
            let answer = client.send(request).await?;
            return Ok(answer.map(|body| self.watched(body).boxed_unsync()));
        }
        match self.fate(request.method()) {
            Fate::Passes => Ok(client.send(request).await?.map(Body::boxed_unsync)),
            Fate::Conflicts => {
                self.conflicts.fetch_add(1, SeqCst);
                Ok(refusal(409, "Conflict"))
            }
            Fate::Fails => {
                self.failed.fetch_add(1, SeqCst);
                Ok(refusal(500, "InternalError"))
            }
            Fate::IsLost => {
                self.failed.fetch_add(1, SeqCst);
                client.send(request).await?;
                Ok(refusal(500, "InternalError"))
            }
        }
    }

    fn fate(&self, method: &Method) -> Fate {
        let mut dice = self.dice.lock();
        match dice.below(100) {
            _ if *method == Method::GET => Fate::Passes,
            n if n < CONFLICTS => Fate::Conflicts,
            n if n < CONFLICTS + FAILS => match dice.percent(50) {
                true => Fate::Fails,
                false => Fate::IsLost,
            },
            _ => Fate::Passes,
        }
    }

    /// Returns a watch body that breaks after some hundred events.
    fn watched(&self, body: Body) -> Watched {
        self.watches.fetch_add(1, SeqCst);
        let left = 50 + self.dice.lock().below(500);
        Watched {
            body,
            left,
            faults: self.clone(),
        }
    }
}

struct Watched {
    body: Body,
    left: u64,
    faults: Faults,
}

impl http_body::Body for Watched {
    type Data = bytes::Bytes;
    type Error = kube::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.left -= 1;
            if self.left == 0 {
                self.faults.cut.fetch_add(1, SeqCst);
            }
        }
        polled
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.faults.watches.fetch_sub(1, SeqCst);
    }
}

fn refusal(code: u16, reason: &str) -> Response<ResponseBody> {
    let status =
        json!({"kind": "Status", "code": code, "reason": reason, "message": "injected fault"});
    let body = Body::from(status.to_string().into_bytes());
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}
