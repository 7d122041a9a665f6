//! The task that posts events, one after the other.

use std::time::Duration;

use http::Method;
use opkit_client::{ObjectKey, Patch, RequestError, RestClient, WriteOptions, one_line};
use opkit_random::Random;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::body;
use crate::correlator::{Correlator, Decision, Post};
use crate::event::RecordedEvent;
use crate::{EventApi, EventMetrics, Reporter};

/// Maximum number of attempts to post an event while the server cannot be reached; client-go's
/// value.
const MAX_ATTEMPTS: u32 = 12;
/// Time between two attempts; client-go's value.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Poster of the events of an [`EventRecorder`](crate::EventRecorder). Events are posted one after
/// the other: while one event is retried because the server cannot be reached, the following events
/// wait.
#[derive(Debug)]
pub struct EventPoster {
    client: RestClient,
    reporter: Reporter,
    receiver: mpsc::Receiver<RecordedEvent>,
    metrics: EventMetrics,
    correlator: Correlator,
    origin: Instant,
    /// Source of the random delay before the first retry, so that many processes do not retry at
    /// the same time.
    random: Random,
    /// Whether the server was found to have `events.k8s.io`.
    is_api_known: bool,
    /// Whether a rejected event was logged as a warning. Later rejected events are logged as debug
    /// messages.
    has_warned: bool,
}

impl EventPoster {
    pub(crate) fn new(
        client: RestClient,
        reporter: Reporter,
        receiver: mpsc::Receiver<RecordedEvent>,
        metrics: EventMetrics,
    ) -> Self {
        Self {
            correlator: Correlator::new(reporter.api, Duration::ZERO),
            client,
            reporter,
            receiver,
            metrics,
            origin: Instant::now(),
            random: Random::new(Random::seed()),
            is_api_known: false,
            has_warned: false,
        }
    }

    /// Posts events until `stop` is cancelled, then makes one attempt to post each event that is
    /// still in the queue.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future drops the events in the queue.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let wake = self.origin + self.correlator.wake_at();
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(wake) => {
                    for post in self.correlator.wake(self.origin.elapsed()) {
                        self.deliver(&post, &stop).await;
                    }
                }
                event = self.receiver.recv() => match event {
                    Some(event) => self.handle(event, &stop).await,
                    None => break,
                },
                () = stop.cancelled() => break,
            }
        }
        self.receiver.close();
        while let Some(event) = self.receiver.recv().await {
            self.handle(event, &stop).await;
        }
        let dropped = self.metrics.total();
        if dropped > 0 {
            warn!(dropped, "events were dropped");
        }
    }

    /// Passes an event to the correlator, and posts it unless it is deferred or dropped.
    async fn handle(&mut self, event: RecordedEvent, stop: &CancellationToken) {
        match self.correlator.observe(self.origin.elapsed(), event) {
            Decision::Post(post) => self.deliver(&post, stop).await,
            Decision::Defer => {}
            Decision::Spam => self.metrics.spam(),
        }
    }

    /// Posts an event and retries while the server cannot be reached. After `stop` is cancelled
    /// there is only one attempt.
    async fn deliver(&mut self, post: &Post, stop: &CancellationToken) {
        let mut pause = RETRY_INTERVAL.mul_f64(self.random.unit());
        for _ in 1..MAX_ATTEMPTS {
            match self.post(post).await {
                Err(error) if is_retryable(&error) => {}
                result => return self.record_result(post, result),
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                break;
            }
            pause = RETRY_INTERVAL;
        }
        let result = self.post(post).await;
        self.record_result(post, result);
    }

    /// Counts and logs an event that was not posted.
    fn record_result(&mut self, post: &Post, result: Result<(), RequestError>) {
        let Err(error) = result else { return };
        let (object, error_text) = (&post.event.about, one_line(&error));
        if error.is_fenced() {
            self.metrics.fenced();
        } else if is_retryable(&error) {
            self.metrics.unreachable();
            warn!(%object, error = error_text, "event dropped: the server cannot be reached");
            return;
        } else {
            self.metrics.refused();
            // Events in a namespace that is being deleted are forbidden, which is expected. A
            // missing permission or an invalid event fails every time, so only the first one is a
            // warning.
            if (error.is_forbidden() || error.is_invalid()) && !self.has_warned {
                self.has_warned = true;
                warn!(%object, error = error_text, "event not posted");
                return;
            }
        }
        debug!(%object, error = error_text, "event not posted");
    }

    /// Makes one attempt to post an event: patches it if it exists, and creates it otherwise.
    async fn post(&mut self, post: &Post) -> Result<(), RequestError> {
        if post.count > 1 {
            match self.change(post).await {
                // The event has expired on the server, or was never created.
                Err(error) if error.is_not_found() => {}
                result => return result,
            }
        }
        match self.create(post).await {
            Err(error) if error.is_not_found() && self.fall_back_to_core().await => {
                self.create(post).await
            }
            result => result,
        }
    }

    async fn create(&self, post: &Post) -> Result<(), RequestError> {
        let api = self.correlator.api();
        let event = body::new_event(api, post, &self.reporter);
        let namespace = Some(body::namespace_of(&post.event));
        let options = WriteOptions::for_manager(&*self.reporter.controller);
        self.client
            .create(&body::kind(api), namespace, &event, &options)
            .await
            .map(drop)
    }

    async fn change(&self, post: &Post) -> Result<(), RequestError> {
        let api = self.correlator.api();
        let change = body::change(api, post);
        let key = ObjectKey::from((body::namespace_of(&post.event), post.name.as_str()));
        let options = WriteOptions::for_manager(&*self.reporter.controller);
        self.client
            .patch(
                &body::kind(api),
                &key,
                None,
                Patch::Merge(&change),
                &options,
            )
            .await
            .map(drop)
    }

    /// Switches to `core` if the server does not have `events.k8s.io`, and reports whether it
    /// switched. The server is asked for `events.k8s.io`, because "not found" may also mean that
    /// the namespace is missing. After the server has confirmed `events.k8s.io`, it is not asked
    /// again.
    async fn fall_back_to_core(&mut self) -> bool {
        if self.is_api_known || self.correlator.api() != EventApi::EventsV1 {
            return false;
        }
        let request = self.client.request(Method::GET, "/apis/events.k8s.io/v1");
        match request.bytes().await {
            Err(error) if error.is_not_found() => {
                debug!("the server has no events.k8s.io, so events are posted in core");
                let now = self.origin.elapsed();
                self.correlator = Correlator::new(EventApi::CoreV1, now);
                true
            }
            response => {
                self.is_api_known = response.is_ok();
                false
            }
        }
    }
}

/// Reports whether the cause of the error is the connection and not the event.
fn is_retryable(error: &RequestError) -> bool {
    error.is_unreachable()
}
