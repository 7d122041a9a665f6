//! Crashes at a chosen request: the operator stops, the cluster stays.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use kube::client::Body;
use tokio_util::sync::CancellationToken;

/// Write request at which an operator crashes (the first is 1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CrashPoint {
    /// Before the request reaches the server.
    Before(usize),
    /// After the server has processed the request, before the operator gets the response.
    After(usize),
}

/// Crash that waits for its request.
///
/// From that request on the operator gets no responses.
#[derive(Clone, Debug)]
pub(crate) struct Crash {
    point: CrashPoint,
    writes: Arc<AtomicUsize>,
    happened: CancellationToken,
}

impl Crash {
    /// Creates a crash at `point`.
    pub(crate) fn at(point: CrashPoint) -> Self {
        Self {
            point,
            writes: Arc::default(),
            happened: CancellationToken::new(),
        }
    }

    /// Reports whether the crash has happened.
    pub(crate) fn has_happened(&self) -> bool {
        self.happened.is_cancelled()
    }

    /// Waits until the crash has happened.
    ///
    /// # Cancel safety
    /// Safe to drop: this only waits.
    pub(crate) async fn happened(&self) {
        self.happened.cancelled().await;
    }

    /// Returns a client that gets no responses after the crash.
    pub(crate) fn around(&self, client: kube::Client) -> kube::Client {
        let namespace = client.default_namespace().to_owned();
        kube::Client::new(
            Crashing {
                client,
                crash: self.clone(),
            },
            namespace,
        )
    }
}

/// Service that forwards requests until the crash.
#[derive(Clone)]
struct Crashing {
    client: kube::Client,
    crash: Crash,
}

impl tower::Service<Request<Body>> for Crashing {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, crash } = self.clone();
        Box::pin(async move {
            if crash.has_happened() {
                return pending().await;
            }
            if request.method() == Method::GET {
                return client.send(request).await;
            }
            let number = crash.writes.fetch_add(1, Ordering::SeqCst) + 1;
            if crash.point == CrashPoint::Before(number) {
                crash.happened.cancel();
                return pending().await;
            }
            let response = client.send(request).await;
            if crash.point == CrashPoint::After(number) {
                crash.happened.cancel();
                return pending().await;
            }
            response
        })
    }
}
