//! A limit of requests per second. Waiting requests are sent in the order of their arrival.

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
use super::middleware::{Middleware, Next, Outcome};

/// Longest wait that is not logged; client-go's value.
const LONG_WAIT: Duration = Duration::from_millis(50);

/// A token bucket that lets `burst` requests pass immediately, then `qps` requests per second.
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
    /// Average number of requests per second. Zero and negative values set no limit.
    pub qps: f64,
    /// Number of requests that pass immediately when the bucket is full; at least 1.
    pub burst: u32,
}

/// A token bucket, stored as the time at which the bucket will be full again. Each token that is
/// taken moves this time forward, so that waits end in the order in which they started.
#[derive(Debug)]
struct Bucket {
    /// Time in which one token is added.
    period: Duration,
    /// Time in which the empty bucket fills up.
    capacity: Duration,
    /// Time at which the bucket is full again, measured from the creation of the rate limiter.
    full_at: Duration,
}

impl Bucket {
    fn new(limit: RateLimit) -> Option<Self> {
        let period = Duration::try_from_secs_f64(limit.qps.recip()).ok();
        let period = period.filter(|period| !period.is_zero() && limit.qps > 0.0)?;
        Some(Self {
            period,
            capacity: period.saturating_mul(limit.burst.max(1)),
            full_at: Duration::ZERO,
        })
    }

    /// Takes one token. Returns the time until the token is available.
    fn take(&mut self, now: Duration) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.period);
        self.full_at
            .saturating_sub(now.saturating_add(self.capacity))
    }

    /// Returns an unused token to the bucket. Does not shorten waits that have already started.
    fn put_back(&mut self) {
        self.full_at = self.full_at.saturating_sub(self.period);
    }
}

/// A token that is returned to the bucket if the caller stops waiting. Otherwise callers that time
/// out and retry would lengthen the wait of later requests without sending any themselves.
struct Token(Option<Arc<Mutex<Bucket>>>);

impl Token {
    fn spend(mut self) {
        self.0 = None;
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(bucket) = &self.0 {
            bucket.lock().put_back();
        }
    }
}

/// Middleware that delays requests until the rate limit allows them.
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

impl Middleware for Limiter {
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
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
                    tracing::info!(?wait, path, "request delayed by the client's rate limit");
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
