//! Posting events, one after the other.

use std::time::Duration;

use http::Method;
use opkit_client::{ObjectKey, Patch, RequestError, RestClient, one_line};
use opkit_random::Random;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::body;
use crate::correlator::{Correlator, Post, Verdict};
use crate::event::Recorded;
use crate::{EventApi, EventMetrics, Reporter};

/// How often an event is tried while the server cannot be reached; client-go's figures.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);

/// Posts the events that an [`EventRecorder`](crate::EventRecorder) takes, one after the other.
/// While the server cannot be reached, events wait behind the one that is retried.
#[derive(Debug)]
pub struct EventPoster {
    client: RestClient,
    reporter: Reporter,
    receiver: mpsc::Receiver<Recorded>,
    metrics: EventMetrics,
    correlator: Correlator,
    origin: Instant,
    /// So that many processes do not try at the same time.
    random: Random,
    /// Whether it was asked which API there is.
    knows_api: bool,
    /// Whether a refusal was told.
    has_warned: bool,
}

impl EventPoster {
    pub(crate) fn new(
        client: RestClient,
        reporter: Reporter,
        receiver: mpsc::Receiver<Recorded>,
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
            knows_api: false,
            has_warned: false,
        }
    }

    /// Posts events until `stop`, and then those that still wait, each with one attempt.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future drops the events that wait.
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
                    Some(event) => self.take(event, &stop).await,
                    None => break,
                },
                () = stop.cancelled() => break,
            }
        }
        self.receiver.close();
        while let Some(event) = self.receiver.recv().await {
            self.take(event, &stop).await;
        }
        let dropped = self.metrics.total();
        if dropped > 0 {
            warn!(dropped, "events were dropped");
        }
    }

    async fn take(&mut self, event: Recorded, stop: &CancellationToken) {
        match self.correlator.observe(self.origin.elapsed(), event) {
            Verdict::Post(post) => self.deliver(&post, stop).await,
            Verdict::Quiet => {}
            Verdict::Spam => self.metrics.spam(),
        }
    }

    async fn deliver(&mut self, post: &Post, stop: &CancellationToken) {
        let mut pause = PAUSE.mul_f64(self.random.unit());
        for _ in 1..TRIES {
            match self.post(post).await {
                Err(error) if is_retryable(&error) => {}
                result => return self.done(post, result),
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                break;
            }
            pause = PAUSE;
        }
        let result = self.post(post).await;
        self.done(post, result);
    }

    /// Counts and tells what was not posted.
    fn done(&mut self, post: &Post, result: Result<(), RequestError>) {
        let Err(error) = result else { return };
        let (object, said) = (&post.event.about, one_line(&error));
        if error.is_fenced() {
            self.metrics.fenced();
        } else if is_retryable(&error) {
            self.metrics.unreachable();
            warn!(%object, error = said, "event given up");
            return;
        } else {
            self.metrics.refused();
            // An event about an object in a namespace that goes away cannot be posted, nor can any
            // without the permission or without a reason; once is enough to know of the latter.
            if (error.is_forbidden() || error.is_invalid()) && !self.has_warned {
                self.has_warned = true;
                warn!(%object, error = said, "event not posted");
                return;
            }
        }
        debug!(%object, error = said, "event not posted");
    }

    async fn post(&mut self, post: &Post) -> Result<(), RequestError> {
        if post.count > 1 {
            match self.change(post).await {
                // The event has expired on the server meanwhile, or never came there.
                Err(error) if error.is_not_found() => {}
                result => return result,
            }
        }
        match self.create(post).await {
            Err(error) if error.is_not_found() && self.falls_back().await => {
                self.create(post).await
            }
            result => result,
        }
    }

    async fn create(&self, post: &Post) -> Result<(), RequestError> {
        let api = self.correlator.api();
        let event = body::whole(api, post, &self.reporter);
        let namespace = Some(body::namespace_of(&post.event));
        let controller = &self.reporter.controller;
        self.client
            .create(&body::kind(api), namespace, &event, controller)
            .await
            .map(drop)
    }

    async fn change(&self, post: &Post) -> Result<(), RequestError> {
        let api = self.correlator.api();
        let change = body::change(api, post);
        let key = ObjectKey::from((body::namespace_of(&post.event), post.name.as_str()));
        let controller = &self.reporter.controller;
        self.client
            .patch(
                &body::kind(api),
                &key,
                None,
                Patch::Merge(&change),
                controller,
            )
            .await
            .map(drop)
    }

    /// Whether the server has no `events.k8s.io`, so that from now on events are posted in `core`.
    /// It is asked once: a namespace that is not there is answered alike.
    async fn falls_back(&mut self) -> bool {
        if self.knows_api || self.correlator.api() != EventApi::EventsV1 {
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
            answer => {
                self.knows_api = answer.is_ok();
                false
            }
        }
    }
}

/// Whether the event itself is not what is wrong.
fn is_retryable(error: &RequestError) -> bool {
    error.is_unreachable()
}
