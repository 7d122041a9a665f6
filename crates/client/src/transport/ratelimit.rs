//! At most so many requests a second, in the order in which they came.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::ServiceExt;

use super::host_of;
use super::metrics::Metrics;
use super::step::{Next, Outcome, Step};

/// A wait that is worth a line in the log; client-go's limit.
const LONG_WAIT: Duration = Duration::from_millis(50);

/// A token bucket: `burst` requests at once, then `qps` a second.
///
/// # Examples
/// ```
/// use opkit_client::{ClientOptions, RateLimit};
/// let mut options = ClientOptions::default();
/// // client-go's default.
/// options.rate_limit = Some(RateLimit { qps: 5.0, burst: 10 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Requests a second in the long run; zero and less is no limit.
    pub qps: f64,
    /// Requests at once after a rest; at least one.
    pub burst: u32,
}

/// When the bucket will be full again, as a time since its making. One reservation after the other
/// moves it on, so that waits end in the order in which they began.
#[derive(Debug)]
struct Bucket {
    period: Duration,
    room: Duration,
    full_at: Duration,
}

impl Bucket {
    fn new(limit: RateLimit) -> Option<Self> {
        let period = Duration::try_from_secs_f64(limit.qps.recip()).ok();
        let period = period.filter(|period| !period.is_zero() && limit.qps > 0.0)?;
        Some(Self {
            period,
            room: period.saturating_mul(limit.burst.max(1)),
            full_at: Duration::ZERO,
        })
    }

    /// Takes one token; how long until it is there.
    fn take(&mut self, now: Duration) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.period);
        self.full_at.saturating_sub(now.saturating_add(self.room))
    }

    /// Gives a token back that was not used. Those that wait already go on waiting as long.
    fn give_back(&mut self) {
        self.full_at = self.full_at.saturating_sub(self.period);
    }
}

/// A token that is given back if its wait is given up: else callers that time out and try again
/// would make the queue longer and longer, with nobody in it.
struct Token(Option<Arc<Mutex<Bucket>>>);

impl Token {
    fn spend(mut self) {
        self.0 = None;
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(bucket) = &self.0 {
            bucket.lock().give_back();
        }
    }
}

/// Makes requests wait for their turn.
#[derive(Clone)]
pub(super) struct Limiter {
    bucket: Option<Arc<Mutex<Bucket>>>,
    origin: Instant,
    metrics: Metrics,
}

impl Limiter {
    pub(super) fn new(limit: RateLimit, metrics: Metrics) -> Self {
        Self {
            bucket: Bucket::new(limit).map(|bucket| Arc::new(Mutex::new(bucket))),
            origin: Instant::now(),
            metrics,
        }
    }
}

impl Step for Limiter {
    fn pass(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let wait = self.bucket.as_ref().map(|bucket| {
            let now = self.origin.elapsed();
            bucket.lock().take(now)
        });
        let wait = wait.unwrap_or_default();
        let token = Token(self.bucket.clone());
        let metrics = &self.metrics;
        metrics.waited(request.method(), &host_of(request.uri()), wait);
        async move {
            if !wait.is_zero() {
                if wait > LONG_WAIT {
                    let path = request.uri().path();
                    tracing::info!(?wait, path, "request waits for the client's rate limit");
                }
                tokio::time::sleep(wait).await;
            }
            token.spend();
            next.oneshot(request).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
