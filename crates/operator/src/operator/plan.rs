//! Planning: an operator reconciles the objects of a cluster, and the server stores no write.

mod changes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use opkit_client::{ClientOptions, Seam};
use opkit_controller::{Manager, Reconciled, Result, until_signal};
use opkit_debug::{FailedReconcile, ObjectName, OperatorPlan, ReconciledKind};
use tokio_util::sync::CancellationToken;

use self::changes::Changes;
use super::{Operator, RunOptions, state};
use crate::OperatorError;
use crate::arguments::{CommandLine, Flags, ParsedArgs};

/// Largest number of times that an object is reconciled. A reconcile that reads what it has written
/// needs two or three; an operator that always writes something else never ends.
const ROUNDS_MAX: usize = 10;

/// Number of failures of an object after which it is not the reason for a further round.
const FAILURES_MAX: usize = 2;

impl Operator {
    /// Sets the state that replaces those of type `S` while this operator plans: `opkit plan`
    /// reconciles the objects of a cluster on the machine of a user, and no write reaches the
    /// cluster, but a state could write elsewhere. An operator with a state is refused by
    /// `opkit plan` unless each of its states has a replacement. `make` is as in
    /// [`state`](Operator::state); the state that it creates must only read.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; }
    /// use opkit::{Operator, Result};
    ///
    /// /// Connection to a store of buckets.
    /// struct App {
    ///     is_read_only: bool,
    /// }
    ///
    /// impl App {
    ///     async fn connect() -> Result<App> {
    ///         Ok(App { is_read_only: false })
    ///     }
    ///
    ///     async fn read_only() -> Result<App> {
    ///         Ok(App { is_read_only: true })
    ///     }
    /// }
    /// let operator = Operator::new("bucket-operator")
    ///     .state(App::connect)
    ///     .state_for_plan(App::read_only);
    /// # drop(operator);
    /// ```
    pub fn state_for_plan<M>(mut self, make: impl state::MakeState<M>) -> Self {
        self.plan_states.push(state::Declared::once(make));
        self
    }

    /// Sets the state that replaces those of type `S` while this operator plans, and that `make`
    /// creates with a client of the cluster, as in [`state_with`](Operator::state_with). Writes of
    /// that client are planned, too. See [`state_for_plan`](Operator::state_for_plan).
    pub fn state_for_plan_with<M>(mut self, make: impl state::MakeStateWith<M>) -> Self {
        self.plan_states.push(state::Declared::per_term(make));
        self
    }

    /// Returns the changes that this operator would make to the objects of a cluster, without
    /// making them: it reconciles each existing object of its kinds, and sends each write as a dry
    /// run. Later reads include the planned objects, so that a reconcile continues as after the
    /// write.
    ///
    /// No leader is elected; webhooks, metrics, probes and runnables are not started. An operator
    /// with a state that has no [replacement](Operator::state_for_plan) is refused:
    /// [`OperatorPlan::refused`] has the reason.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_operator::*; pub use opkit_operator as operator; }
    /// use opkit::operator::{CancellationToken, RunOptions};
    /// use opkit::{Operator, Result};
    ///
    /// async fn is_up_to_date(operator: Operator, client: kube::Client) -> Result<bool> {
    ///     let plan = operator.plan(client, RunOptions::default(), CancellationToken::new()).await?;
    ///     Ok(plan.refused.is_none() && plan.changes.is_empty() && plan.failures.is_empty())
    /// }
    /// ```
    ///
    /// # Errors
    /// Same as [`run_with`](Operator::run_with). A reconcile that fails is no error: the plan has
    /// it.
    ///
    /// # Cancel safety
    /// Not cancel safe: cancel `stop` instead of dropping the future.
    pub async fn plan(
        self,
        client: kube::Client,
        options: RunOptions,
        stop: CancellationToken,
    ) -> Result<OperatorPlan> {
        let line = CommandLine::new(&self.name, &self.args)?;
        let args = line.parse_own(&options.args)?;
        self.plan_with(client, options, args, stop).await
    }

    /// Connects to the cluster that the flags select, and plans until a signal.
    pub(super) async fn connect_and_plan(
        self,
        flags: Flags,
        args: ParsedArgs,
    ) -> Result<OperatorPlan> {
        self.check(&flags.namespace)?;
        if let Some(reason) = self.reason_not_to_plan() {
            return Ok(OperatorPlan::refused(reason));
        }
        let connected = flags.connect(ClientOptions::default()).await;
        let client = connected.map_err(OperatorError::Connect)?.client;
        let options = RunOptions::from(flags);
        until_signal(|stop| self.plan_with(client, options, args, stop)).await
    }

    async fn plan_with(
        mut self,
        client: kube::Client,
        options: RunOptions,
        args: ParsedArgs,
        stop: CancellationToken,
    ) -> Result<OperatorPlan> {
        self.check(&options.namespaces)?;
        if let Some(reason) = self.reason_not_to_plan() {
            return Ok(OperatorPlan::refused(reason));
        }
        let mut settings = self.manager_options(&client, &options);
        settings.leader_election = None;
        settings.sharding = None;
        let mut seams = Seams::default();
        let mut manager = Manager::new(self.name.clone(), seams.wrap(None, client), settings);
        for (name, connect) in std::mem::take(&mut self.clusters) {
            let client = connect().await.map_err(|cause| OperatorError::Cluster {
                name: name.to_string(),
                cause,
            })?;
            let client = seams.wrap(Some(name.clone()), client);
            manager = manager.cluster(name, client);
        }
        for setup in self.setup {
            manager = setup(manager);
        }
        for state in self.plan_states {
            let give = (state.make)(args.clone()).await?;
            manager = give(manager);
        }
        for controller in self.controllers {
            manager = manager.controller(controller);
        }
        let mut planning = Planning::new(seams);
        let is_finished = manager
            .reconcile_each(stop, ROUNDS_MAX, &mut |reconciled| {
                planning.finished(reconciled)
            })
            .await
            .map_err(OperatorError::Manager)?;
        Ok(planning.plan(is_finished))
    }

    /// Returns why this operator cannot be planned, or `None` if it can.
    fn reason_not_to_plan(&self) -> Option<String> {
        let declared = self.states.iter().map(|state| state.state);
        let mut states = declared.chain(self.state_values.iter().copied());
        let is_replaced = |state: &str| self.plan_states.iter().any(|plan| plan.state == state);
        let state = states.find(|state| !is_replaced(state))?;
        let name = short(state);
        Some(format!(
            "its state {name} could write outside of the cluster; give `plan` one that cannot: .state_for_plan({name}::read_only)"
        ))
    }
}

/// Returns the name of a type without its module.
fn short(name: &str) -> &str {
    let end = name.find('<').unwrap_or(name.len());
    let path = name.get(..end).unwrap_or(name);
    path.rsplit("::").next().unwrap_or(name)
}

/// Seams of the clusters in plan mode.
#[derive(Debug, Default)]
struct Seams {
    clusters: Vec<(Option<Arc<str>>, Seam)>,
}

impl Seams {
    /// Returns a client whose writes are planned.
    fn wrap(&mut self, cluster: Option<Arc<str>>, client: kube::Client) -> kube::Client {
        let seam = Seam::new();
        seam.start_plan();
        let client = seam.wrap(client);
        self.clusters.push((cluster, seam));
        client
    }
}

/// An object, with the name of its cluster if it is not the one that the operator runs in.
type InCluster = (Option<String>, ObjectName);

/// What has been planned so far.
struct Planning {
    /// Each cluster with the changes so far.
    clusters: Vec<(Seam, Changes)>,
    /// Reconciled objects by kind and plural.
    reconciled: BTreeMap<(String, String), BTreeSet<InCluster>>,
    /// Errors of the objects whose last reconcile failed, by controller, with the number of
    /// failures.
    failures: BTreeMap<(String, InCluster), (String, usize)>,
}

impl Planning {
    fn new(seams: Seams) -> Self {
        let clusters = seams.clusters.into_iter();
        let clusters = clusters.map(|(cluster, seam)| (seam, Changes::new(cluster.as_deref())));
        Self {
            clusters: clusters.collect(),
            reconciled: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Collects the changes of a finished reconcile. Returns whether all objects must be reconciled
    /// once more.
    fn finished(&mut self, reconciled: Reconciled) -> bool {
        let Reconciled {
            controller,
            kind,
            request,
            error,
            ..
        } = reconciled;
        let name = ObjectName {
            kind: kind.noun().to_owned(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
        };
        let cluster = request.cluster().map(str::to_owned);
        let of_kind = (kind.noun().to_owned(), kind.plural.to_string());
        let objects = self.reconciled.entry(of_kind).or_default();
        let object = (cluster, name.clone());
        objects.insert(object.clone());
        let mut has_changed = false;
        for (seam, changes) in &mut self.clusters {
            for change in seam.planned(changes.seen()) {
                has_changed = true;
                changes.add(change, Some(&name));
            }
        }
        let key = (controller, object);
        match error {
            None => {
                self.failures.remove(&key);
                has_changed
            }
            Some(error) => {
                let (last, number) = self.failures.entry(key).or_default();
                *last = error;
                *number = number.saturating_add(1);
                has_changed || *number < FAILURES_MAX
            }
        }
    }

    fn plan(mut self, is_finished: bool) -> OperatorPlan {
        let mut plan = OperatorPlan::default();
        for (seam, changes) in &mut self.clusters {
            // Writes of tasks that a reconcile has started.
            for change in seam.end_plan().into_iter().skip(changes.seen()) {
                changes.add(change, None);
            }
            plan.changes.extend(changes.objects());
        }
        let reconciled = self.reconciled.into_iter();
        plan.reconciled = reconciled
            .map(|((kind, plural), objects)| ReconciledKind {
                kind,
                plural,
                objects: objects.len(),
            })
            .collect();
        let failures = self.failures.into_iter();
        plan.failures = failures
            .map(|((controller, (_, object)), (error, _))| FailedReconcile {
                object,
                controller,
                error,
            })
            .collect();
        plan.is_unfinished = !is_finished;
        plan
    }
}

#[cfg(test)]
mod tests;
