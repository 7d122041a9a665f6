//! The leader election of a manager.

use std::time::Duration;

use opkit_client::Fence;
use opkit_leaderelection::{
    LeaderElectionError, LeaderElectionOptions, LeaderElector, LeaderWatchdog, LeaderWork,
    Leadership, ShardMember, WorkGuard,
};
use opkit_servers::metrics::MetricsRegistry;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::task_group::Deadline;

/// Time after the end of the lease at which an elector that has not stopped leading is reported as
/// stuck. Kubernetes' own components use the same value.
const TOLERANCE: Duration = Duration::from_secs(20);

/// A running leader elector, and the work that runs while this process is the leader.
#[derive(Debug)]
pub(super) struct Election {
    task: JoinSet<()>,
    stop: CancellationToken,
    leadership: watch::Receiver<Leadership>,
    work: LeaderWork,
    fence: Fence,
    /// Guard that is held while the work of the current leader term runs, so that the lease is not
    /// released.
    guard: Option<WorkGuard>,
}

impl Election {
    pub(super) fn start(
        client: opkit_client::RestClient,
        options: LeaderElectionOptions,
        metrics: &MetricsRegistry,
        watchdog: &watch::Sender<Option<LeaderWatchdog>>,
    ) -> Result<Self, LeaderElectionError> {
        options.metrics.register(&mut metrics.lock());
        let elector = LeaderElector::try_new(client, options)?;
        watchdog.send_replace(Some(elector.watchdog(TOLERANCE)));
        let parts = (elector.leadership(), elector.work(), elector.fence());
        Ok(Self::run(parts, |stop| elector.run(stop)))
    }

    /// Starts a replica of a sharded operator. A leader term is a term in which the replica holds
    /// its own Lease.
    pub(super) fn share(
        member: ShardMember,
        watchdog: &watch::Sender<Option<LeaderWatchdog>>,
    ) -> Self {
        watchdog.send_replace(Some(member.watchdog(TOLERANCE)));
        let parts = (member.leadership(), member.work(), member.fence());
        Self::run(parts, |stop| member.run(stop))
    }

    fn run<Fut: Future<Output = ()> + Send + 'static>(
        (leadership, work, fence): (watch::Receiver<Leadership>, LeaderWork, Fence),
        run: impl FnOnce(CancellationToken) -> Fut,
    ) -> Self {
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        task.spawn(run(stop.clone()));
        Self {
            task,
            stop,
            leadership,
            work,
            fence,
            guard: None,
        }
    }

    /// Waits until leadership changes.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect; the method can be called again.
    pub(super) async fn changed(&mut self) -> Result<Leadership, JoinError> {
        if self.leadership.changed().await.is_ok() {
            return Ok(*self.leadership.borrow_and_update());
        }
        // The elector has stopped, which it does only on request.
        match self.task.join_next().await {
            Some(Err(error)) => Err(error),
            _ => std::future::pending().await,
        }
    }

    /// Registers the work of a leader term. Returns the fence that refuses writes after the term,
    /// or `None` if the term is already over.
    pub(super) fn begin(&mut self, term: u64) -> Option<Fence> {
        self.guard = Some(self.work.begin(term)?);
        Some(self.fence.for_term(term))
    }

    /// Reports to the elector that the work of the current leader term has stopped.
    pub(super) fn ended(&mut self) {
        self.guard = None;
    }

    /// Lets a replica of a sharded operator give away its slots, each when the reconciles in it
    /// have ended. The Lease is held until [`release`](Self::release).
    pub(super) fn leave(&self) {
        self.stop.cancel();
    }

    /// Stops the elector, which releases the lease if it holds the lease. Adds an entry to `late`
    /// if the release does not end by the deadline.
    pub(super) async fn release(&mut self, deadline: Deadline, late: &mut Vec<String>) {
        self.ended();
        self.stop.cancel();
        let ended = async { while self.task.join_next().await.is_some() {} };
        if !deadline.holds(ended).await {
            late.push("the release of the lease".to_owned());
            self.task.abort_all();
            self.task.detach_all();
        }
    }
}
