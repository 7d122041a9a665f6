//! Leader terms of a manager: the work that needs leadership starts and stops with each term.

use std::sync::Arc;

use opkit_client::Fence;
use opkit_leaderelection::{Leadership, ShardMember};

use super::election::Election;
use super::runnable::Group;
use super::running::RunningManager;
use super::task_group::TaskGroup;
use super::{ManagerOptions, ShardingOptions};
use crate::error::ManagerError;
use crate::state::States;
use crate::worker::RunningController;
use crate::worker::slots::Slots;

impl RunningManager {
    /// Starts the election, or the work that needs leadership if there is no election.
    pub(super) fn start_leading(&mut self) -> Result<(), ManagerError> {
        let ManagerOptions {
            metrics, watchdog, ..
        } = &self.manager.options;
        if let Some(member) = self.member.take() {
            self.election = Some(Election::share(member, watchdog));
            return Ok(());
        }
        let Some(options) = self.manager.options.leader_election.clone() else {
            let states = self.states();
            self.leadership
                .send_replace(Leadership::Leading { term: 1 });
            self.lead(None, &states);
            return Ok(());
        };
        let election = Election::start(self.manager.client.clone(), options, metrics, watchdog);
        self.election = Some(election.map_err(ManagerError::LeaderElection)?);
        Ok(())
    }

    /// Creates this replica of a sharded operator, which takes part in the ring once the caches are
    /// ready.
    pub(super) fn create_member(&mut self) -> Result<(), ManagerError> {
        let Some(ShardingOptions { by, election }) = self.manager.options.sharding.clone() else {
            return Ok(());
        };
        election
            .metrics
            .register(&mut self.manager.options.metrics.lock());
        let member = ShardMember::try_new(self.manager.client.clone(), election);
        let member = member.map_err(ManagerError::LeaderElection)?;
        let slots = Slots::new(by, member.slots());
        self.manager.options.owners.set(&slots);
        self.slots = Some(slots);
        for cluster in &self.clusters {
            cluster.caches.divide(by);
        }
        self.member = Some(member);
        Ok(())
    }

    /// Starts the work that needs leadership. The work reads `states`. With a fence, the work can
    /// write only during the leader term of the fence.
    fn lead(&mut self, fence: Option<&Fence>, states: &Arc<States>) {
        let mut leaders = TaskGroup::default();
        for runnable in self.manager.runnables(Group::Leader) {
            let context = self.run_context(fence, states);
            match &self.slots {
                Some(slots) => leaders.run_in_first_slot(&runnable, context, slots),
                None => leaders.run(&runnable, context),
            }
        }
        for controller in self.controllers.iter().filter(|it| needs_leadership(it)) {
            if let Some(fence) = fence {
                controller.begin_term(fence, states);
            }
            leaders.work(controller);
        }
        self.leaders = leaders;
    }

    /// Handles a change of leadership, and further changes that happen while the first one is
    /// handled.
    pub(super) async fn follow(&mut self, leadership: Leadership) -> Result<(), ManagerError> {
        let mut next = Some(leadership);
        while let Some(leadership) = next {
            next = match leadership {
                Leadership::Leading { term } => self.begin_term(term).await?,
                Leadership::Standby => {
                    self.leadership.send_replace(leadership);
                    self.leaders.abandon().await;
                    if let Some(election) = &mut self.election {
                        election.ended();
                    }
                    None
                }
            };
        }
        Ok(())
    }

    /// Creates the states of a leader term and starts the work of the term. If leadership changes
    /// before the states are created, starts nothing and returns the new leadership.
    async fn begin_term(&mut self, term: u64) -> Result<Option<Leadership>, ManagerError> {
        let begun = self.election.as_mut();
        let Some(fence) = begun.and_then(|election| election.begin(term)) else {
            return Ok(None);
        };
        self.leadership.send_replace(Leadership::Leading { term });
        let context = self.context(Some(&fence));
        let Some(election) = &mut self.election else {
            return Ok(None);
        };
        let states = self.manager.states.clone();
        let states = tokio::select! {
            states = states.with(&self.manager.state_factories, &context) => Arc::new(states?),
            changed = election.changed() => {
                return Ok(Some(changed.map_err(|error| ManagerError::Internal(error.into()))?));
            }
        };
        // This process does not know what other replicas did, or when they would have reconciled an
        // object again. The objects of slots are queued when the slots are served.
        if term > 1 && self.slots.is_none() {
            for controller in self.controllers.iter().filter(|it| needs_leadership(it)) {
                controller.requeue_all(|_| true);
            }
        }
        self.lead(Some(&fence), &states);
        Ok(None)
    }
}

fn needs_leadership(controller: &RunningController) -> bool {
    controller.options.needs_leader_election
}
