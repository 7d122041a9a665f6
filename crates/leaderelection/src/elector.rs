//! The elector: async code around the `engine`, which decides, and the `lock`, which reads and
//! writes the Lease.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture};
use jiff::Timestamp;
use opkit_client::{Fence, RestClient};
use opkit_random::Random;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::engine::{ElectionEngine, Input, LeaseRequest, Phase};
use crate::lock::{LeaseLock, RequestOutcome};
use crate::watchdog::RenewalStatus;
use crate::{
    LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderWatchdog, LeaderWork,
};

/// Leadership of this process.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_leaderelection as leaderelection; }
/// use opkit::leaderelection::Leadership;
/// assert_eq!(Leadership::Standby.term(), None);
/// assert_eq!(Leadership::Leading { term: 2 }.term(), Some(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// This process is not the leader.
    Standby,
    /// This process is the leader.
    Leading {
        /// Number of the current term, counted from 1 in this process. A term lasts from the
        /// acquisition of the Lease to its loss.
        term: u64,
    },
}

impl Leadership {
    /// Returns the number of the current term, or `None` if this process is not the leader.
    pub fn term(self) -> Option<u64> {
        match self {
            Self::Standby => None,
            Self::Leading { term } => Some(term),
        }
    }
}

/// Candidate for a Lease. The candidate acquires the Lease, renews it and, after losing the Lease,
/// tries to acquire it again.
///
/// The protocol is client-go's, so Go and Rust candidates can compete for one Lease. A term is the
/// time from an acquisition of the Lease to its loss; [`leadership`](LeaderElector::leadership)
/// reports the terms of this process. The elector guarantees:
///
/// - **It does not exit.** When the elector loses the Lease, it waits until the work of the term
///   has stopped and tries to acquire the Lease again, in the same process, so that caches are
///   kept.
/// - **It fences writes.** The [`fence`](LeaderElector::fence) closes when the Lease was not
///   renewed in time, so no write of leader-only work leaves the process after the local deadline.
///   The deadlines of two leaders do not overlap while no clock runs more than 10 % too fast or too
///   slow. The wall clock has no influence: it may be wrong and may jump.
///
/// With the default durations, at least 2.5 s pass between the end of a term and the start of the
/// next one with the worst clocks, and 5 s with accurate clocks. A write that passes the fence and
/// is delayed for less than that still arrives before writes of the next leader.
///
/// # Limits
/// - A fence cannot stop a request that has left the process. A write that the network delivers
///   late needs a precondition, such as the `resourceVersion`.
/// - The limit on clocks does not hold for a machine whose monotonic clock stops, such as a paused
///   virtual machine or a sleeping laptop. After it resumes, it treats its Lease as valid for the
///   time that was left when the pause started.
/// - The guarantees do not hold if another client edits or deletes the Lease.
///
/// # Examples
/// Leader-only work follows the leadership and holds a guard while it runs:
/// ```
/// use opkit_client::RestClient;
/// use opkit_leaderelection::{LeaderElectionError, LeaderElectionOptions, LeaderElector, Leadership};
/// use tokio_util::sync::CancellationToken;
///
/// async fn lead(client: kube::Client, stop: CancellationToken) -> Result<(), LeaderElectionError> {
///     let mut options = LeaderElectionOptions::new("shop-operator.opkit.dev");
///     options.namespace = Some("shops".to_owned());
///     let elector = LeaderElector::try_new(RestClient::new(client.clone()), options)?;
///     let (mut leadership, work, fence) = (elector.leadership(), elector.work(), elector.fence());
///     let follow = async {
///         while leadership.changed().await.is_ok() {
///             let term = leadership.borrow_and_update().term();
///             let Some((term, guard)) = term.and_then(|term| Some((term, work.begin(term)?))) else {
///                 continue;
///             };
///             let client = fence.for_term(term).layer(client.clone());
///             // The work writes through `client` until the leadership changes, and then stops.
///             let _ = leadership.wait_for(|now| now.term() != Some(term)).await;
///             drop((client, guard));
///         }
///     };
///     tokio::join!(elector.run(stop), follow);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct LeaderElector {
    engine: ElectionEngine,
    lock: LeaseLock,
    request_timeout: Duration,
    lease_duration: Duration,
    publisher: StatusPublisher,
}

impl LeaderElector {
    /// Creates a candidate. `client` must not write through the fence of this election, which is
    /// closed before the first term. `client` should have no rate limit, because a renewal that
    /// waits behind other requests may be late.
    ///
    /// # Errors
    /// Returns an error if an option is not valid, or if no namespace is set and this process does
    /// not run in a pod.
    pub fn try_new(
        client: RestClient,
        options: LeaderElectionOptions,
    ) -> Result<Self, LeaderElectionError> {
        options.check()?;
        let timing = options.timing()?;
        let namespace = options.namespace()?;
        let identity = options.identity()?;
        let request_timeout = (timing.renew_deadline / 2).max(Duration::from_secs(1));
        let lease_duration = Duration::from_secs(timing.lease_seconds.into());
        let publisher = StatusPublisher {
            lease: Arc::from(format!("{namespace}/{}", options.lease_name)),
            name: options.lease_name.clone(),
            identity: identity.clone(),
            fence: options.fence,
            leadership: watch::Sender::new(Leadership::Standby),
            holder: watch::Sender::new(String::new()),
            work: LeaderWork::default(),
            metrics: options.metrics,
            renewal: Arc::default(),
            slow_paths: 0,
        };
        publisher.metrics.set_standby(&publisher.name);
        Ok(Self {
            engine: ElectionEngine::new(
                identity,
                timing,
                options.release_on_cancel,
                Random::seed(),
            ),
            lock: LeaseLock::new(client, &namespace, &options.lease_name, options.labels),
            request_timeout,
            lease_duration,
            publisher,
        })
    }

    /// Returns the identity of this candidate in the Lease.
    pub fn identity(&self) -> &str {
        &self.publisher.identity
    }

    /// Returns a receiver of the leadership of this process.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.publisher.leadership.subscribe()
    }

    /// Returns a receiver of the identity of the Lease's holder, which is empty if there is no
    /// holder. Use the identity for display only: it is that of the last read, and may be out of
    /// date.
    pub fn holder(&self) -> watch::Receiver<String> {
        self.publisher.holder.subscribe()
    }

    /// Returns the tracker of leader-only work. The elector neither releases the Lease nor acquires
    /// it again before all tracked work has ended.
    pub fn work(&self) -> LeaderWork {
        self.publisher.work.clone()
    }

    /// Returns the fence of this election, which is open while this process holds the Lease.
    pub fn fence(&self) -> Fence {
        self.publisher.fence.clone()
    }

    /// Returns a health check of the election. The check fails if the Lease is not renewed, or if
    /// leader-only work does not end after the loss of the Lease, for longer than the Lease's
    /// duration plus `tolerance`.
    pub fn watchdog(&self, tolerance: Duration) -> LeaderWatchdog {
        LeaderWatchdog {
            lease: self.publisher.lease.clone(),
            fence: self.publisher.fence.clone(),
            renewal: self.publisher.renewal.clone(),
            limit: self.lease_duration.saturating_add(tolerance),
        }
    }

    /// Acquires and renews the Lease until `stop` is cancelled. Then no new work can start; the
    /// Lease is renewed until the running work has ended, and then released.
    ///
    /// # Cancel safety
    /// Dropping the future closes the fence immediately and lets the Lease expire. Cancel `stop` to
    /// release the Lease.
    pub async fn run(mut self, stop: CancellationToken) {
        let (lease, identity) = (self.publisher.lease.clone(), self.identity());
        info!(%lease, identity, "attempting to acquire the lease");
        let mut in_flight: OptionFuture<BoxFuture<'static, RequestOutcome>> = None.into();
        let mut is_stopping = false;
        let mut input = Input::Wake;
        loop {
            let fence = &self.publisher.fence;
            let wall_micros = Timestamp::now().as_microsecond();
            let output = self.engine.step(fence.now(), wall_micros, input);
            self.publisher.publish(&self.engine);
            if self.engine.phase() == Phase::Done {
                return;
            }
            match output.send {
                Some(request) => in_flight = Some(self.send(request)).into(),
                None if !self.engine.is_in_flight() => in_flight = None.into(),
                None => {}
            }
            let now = self.publisher.fence.now();
            let wake = output.wake.map(|wake| sleep(wake.saturating_sub(now)));
            let work = &self.publisher.work;
            input = tokio::select! {
                biased;
                () = stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    work.close();
                    Input::Stop
                }
                Some(outcome) = &mut in_flight => Input::Response(self.lock.handle_outcome(outcome)),
                () = work.wait_idle(), if self.engine.awaits_work_end() => Input::WorkEnded,
                Some(()) = OptionFuture::from(wake) => Input::Wake,
            };
        }
    }

    /// Sends a request with a timeout.
    fn send(&self, request: LeaseRequest) -> BoxFuture<'static, RequestOutcome> {
        let (limit, outcome) = (self.request_timeout, self.lock.send(request));
        Box::pin(async move {
            match timeout(limit, outcome).await {
                Ok(outcome) => outcome,
                Err(_) => RequestOutcome::TimedOut(limit),
            }
        })
    }
}

/// Publishes the state of the engine: fence, leadership, holder, metrics, watchdog and log.
#[derive(Debug)]
struct StatusPublisher {
    /// Namespace and name of the Lease.
    lease: Arc<str>,
    /// Name of the Lease, for metrics.
    name: String,
    identity: String,
    fence: Fence,
    leadership: watch::Sender<Leadership>,
    holder: watch::Sender<String>,
    work: LeaderWork,
    metrics: LeaderElectionMetrics,
    renewal: Arc<RenewalStatus>,
    /// Number of renewals that needed a read of the Lease first and that the metrics have counted.
    slow_paths: u64,
}

impl StatusPublisher {
    /// Publishes the current state of the engine. The fence opens before the start of a term is
    /// published, and closes before the end of a term is published.
    fn publish(&mut self, engine: &ElectionEngine) {
        let before = *self.leadership.borrow();
        let now = match engine.phase() {
            Phase::Leading { deadline } => {
                let term = engine.term();
                self.fence.open(term, deadline);
                self.renewal.set_renewed(engine.renewed());
                Leadership::Leading { term }
            }
            phase => {
                self.fence.close();
                match phase {
                    Phase::Ending { since } => self.renewal.set_ending(since),
                    _ => self.renewal.clear(),
                }
                Leadership::Standby
            }
        };
        let slow = engine.slow_paths().saturating_sub(self.slow_paths);
        self.metrics.add_slow_paths(&self.name, slow);
        self.slow_paths = engine.slow_paths();
        if before != now {
            self.publish_change(now, engine.phase());
        }
        if *self.holder.borrow() != engine.holder() {
            let (lease, leader) = (&self.lease, engine.holder());
            info!(%lease, leader, "the leader has changed");
            self.holder.send_replace(leader.to_owned());
        }
    }

    /// Publishes a change of the leadership.
    fn publish_change(&self, now: Leadership, phase: Phase) {
        let (lease, identity) = (&self.lease, &self.identity);
        match now {
            Leadership::Leading { term } => {
                self.metrics.set_leading(&self.name);
                self.work.open(term);
                info!(%lease, identity, term, "became leader");
            }
            Leadership::Standby => {
                self.metrics.set_standby(&self.name);
                self.work.close();
                match phase {
                    Phase::Ending { .. } => warn!(%lease, identity, "lost the lease"),
                    _ => info!(%lease, identity, "stopped leading"),
                }
            }
        }
        self.leadership.send_replace(now);
    }
}

impl Drop for StatusPublisher {
    fn drop(&mut self) {
        self.fence.close();
        self.renewal.clear();
        if self.leadership.borrow().term().is_some() {
            debug!(lease = %self.lease, "the lease was not released and will expire");
            self.publish_change(Leadership::Standby, Phase::Done);
        }
    }
}

#[cfg(test)]
mod tests;
