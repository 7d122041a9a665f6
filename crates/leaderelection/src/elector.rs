//! The elector: the async shell around the `engine`, which decides, and the `lock`, which is the
//! Lease on the wire.

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

use crate::engine::{Elector, Input, Phase, Request};
use crate::lock::{Lock, Reply};
use crate::watchdog::Pulse;
use crate::{
    LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderWatchdog, LeaderWork,
};

/// Whether this process leads.
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
    /// Somebody else does, or nobody.
    Standby,
    /// This process does.
    Leading {
        /// Its how many-th term, counted from 1.
        term: u64,
    },
}

impl Leadership {
    /// The term, if this process leads.
    pub fn term(self) -> Option<u64> {
        match self {
            Self::Standby => None,
            Self::Leading { term } => Some(term),
        }
    }
}

/// Stands for a Lease, again and again.
///
/// It speaks client-go's protocol, so Go and Rust candidates can stand for one lease. It tells of
/// its terms through [`leadership`](LeaderElector::leadership), and keeps two promises:
///
/// - **It does not end.** Who loses the lease stops the work of the term, waits until that has
///   ended, and stands again, in the same process, with its caches warm.
/// - **It fences writes.** Its [`fence`](LeaderElector::fence) closes by itself when the lease was
///   not renewed in time, so that no write of leader-only work leaves the process after the local
///   deadline, and the deadlines of two leaders do not overlap while no clock runs more than 10 %
///   too fast or too slow. The time of day plays no part: it may be wrong and may jump.
///
/// With the default durations there are 2.5 s between the end of a term and the earliest begin of
/// the next one, clocks at their worst, and 5 s with good ones; a write that was checked in time
/// and is held up for less than that still comes before the next leader's. A fence cannot hold back
/// what has left the process: a write that a network delivers later still needs a precondition,
/// such as the resourceVersion. The bound on clocks does not hold for a machine that is stopped as
/// a whole, clock and all, such as a virtual machine that is paused from outside or a laptop that
/// sleeps: on waking it believes in its lease until that would have ended had there been no pause.
/// Nor does it hold when somebody else edits or deletes the Lease.
///
/// # Examples
/// Who runs leader-only work follows the leadership, and holds a guard while the work lasts:
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
///             // The work: it writes through `client` until the leadership changes, and then ends.
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
    engine: Elector,
    lock: Lock,
    request_timeout: Duration,
    lease_duration: Duration,
    announcer: Announcer,
}

impl LeaderElector {
    /// A candidate. `client` must not be behind a fence of this election, and is better without a
    /// rate limit: a renewal that waits behind other requests may come too late.
    ///
    /// # Errors
    /// When a duration, the name or the identity cannot be, or when no namespace is given and this
    /// process does not run in a pod.
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
        let announcer = Announcer {
            lease: Arc::from(format!("{namespace}/{}", options.lease_name)),
            name: options.lease_name.clone(),
            identity: identity.clone(),
            fence: options.fence,
            leadership: watch::Sender::new(Leadership::Standby),
            holder: watch::Sender::new(String::new()),
            work: LeaderWork::default(),
            metrics: options.metrics,
            pulse: Arc::default(),
            slow_paths: 0,
        };
        announcer.metrics.off(&announcer.name);
        Ok(Self {
            engine: Elector::new(identity, timing, options.release_on_cancel, Random::seed()),
            lock: Lock::new(client, &namespace, &options.lease_name, options.labels),
            request_timeout,
            lease_duration,
            announcer,
        })
    }

    /// Who this candidate is in the lease.
    pub fn identity(&self) -> &str {
        &self.announcer.identity
    }

    /// Follows whether this process leads.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.announcer.leadership.subscribe()
    }

    /// Follows who holds the lease, as far as was seen; empty if nobody. For people: between two
    /// looks at the lease it may be wrong.
    pub fn holder(&self) -> watch::Receiver<String> {
        self.announcer.holder.subscribe()
    }

    /// Where leader-only work signs on and off: the elector does not stand again, and does not
    /// release the lease, before all of it has ended.
    pub fn work(&self) -> LeaderWork {
        self.announcer.work.clone()
    }

    /// The fence of this election: open while the lease is held.
    pub fn fence(&self) -> Fence {
        self.announcer.fence.clone()
    }

    /// A health check that fails when a term is neither renewed nor ended for the lease's duration
    /// and `tolerance`.
    pub fn watchdog(&self, tolerance: Duration) -> LeaderWatchdog {
        LeaderWatchdog {
            lease: self.announcer.lease.clone(),
            fence: self.announcer.fence.clone(),
            pulse: self.announcer.pulse.clone(),
            limit: self.lease_duration.saturating_add(tolerance),
        }
    }

    /// Stands for the lease until `stop`. Then no new work may begin; the lease is renewed until
    /// what is under way has ended, and released.
    ///
    /// # Cancel safety
    /// Dropping it closes the fence at once and leaves the lease to run out. Cancel `stop` to
    /// release it.
    pub async fn run(mut self, stop: CancellationToken) {
        let (lease, identity) = (self.announcer.lease.clone(), self.identity());
        info!(%lease, identity, "standing for leader");
        let mut flight: OptionFuture<BoxFuture<'static, Reply>> = None.into();
        let mut stopping = false;
        let mut input = Input::Wake;
        loop {
            let fence = &self.announcer.fence;
            let wall = Timestamp::now().as_microsecond();
            let output = self.engine.step(fence.now(), wall, input);
            self.announcer.announce(&self.engine);
            if self.engine.phase() == Phase::Done {
                return;
            }
            match output.send {
                Some(request) => flight = Some(self.send(request)).into(),
                None if !self.engine.is_in_flight() => flight = None.into(),
                None => {}
            }
            let now = self.announcer.fence.now();
            let wake = output.wake.map(|wake| sleep(wake.saturating_sub(now)));
            let work = &self.announcer.work;
            input = tokio::select! {
                biased;
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    work.close();
                    Input::Stop
                }
                Some(reply) = &mut flight => Input::Answer(self.lock.take_in(reply)),
                () = work.idle(), if self.engine.awaits_work() => Input::WorkEnded,
                Some(()) = OptionFuture::from(wake) => Input::Wake,
            };
        }
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Reply> {
        let (limit, reply) = (self.request_timeout, self.lock.send(request));
        Box::pin(async move {
            match timeout(limit, reply).await {
                Ok(reply) => reply,
                Err(_) => Reply::late(limit),
            }
        })
    }
}

/// Tells everybody who asked.
#[derive(Debug)]
struct Announcer {
    /// Namespace and name.
    lease: Arc<str>,
    name: String,
    identity: String,
    fence: Fence,
    leadership: watch::Sender<Leadership>,
    holder: watch::Sender<String>,
    work: LeaderWork,
    metrics: LeaderElectionMetrics,
    pulse: Arc<Pulse>,
    slow_paths: u64,
}

impl Announcer {
    /// Tells what the engine says now. A term begins behind an open fence, and ends behind a closed
    /// one.
    fn announce(&mut self, engine: &Elector) {
        let before = *self.leadership.borrow();
        let now = match engine.phase() {
            Phase::Leading { deadline } => {
                let term = engine.term();
                self.fence.open(term, deadline);
                self.pulse.renewed(engine.renewed());
                Leadership::Leading { term }
            }
            phase => {
                self.fence.close();
                match phase {
                    Phase::Ending { since } => self.pulse.ending(since),
                    _ => self.pulse.rest(),
                }
                Leadership::Standby
            }
        };
        let slow = engine.slow_paths().saturating_sub(self.slow_paths);
        self.metrics.slow_path(&self.name, slow);
        self.slow_paths = engine.slow_paths();
        if before != now {
            self.change(now, engine.phase());
        }
        if *self.holder.borrow() != engine.holder() {
            let (lease, leader) = (&self.lease, engine.holder());
            info!(%lease, leader, "the leader has changed");
            self.holder.send_replace(leader.to_owned());
        }
    }

    fn change(&self, now: Leadership, phase: Phase) {
        let (lease, identity) = (&self.lease, &self.identity);
        match now {
            Leadership::Leading { term } => {
                self.metrics.on(&self.name);
                self.work.open(term);
                info!(%lease, identity, term, "became leader");
            }
            Leadership::Standby => {
                self.metrics.off(&self.name);
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

impl Drop for Announcer {
    fn drop(&mut self) {
        self.fence.close();
        self.pulse.rest();
        if self.leadership.borrow().term().is_some() {
            debug!(lease = %self.lease, "the lease is left to run out");
            self.change(Leadership::Standby, Phase::Done);
        }
    }
}

#[cfg(test)]
mod tests;
