//! The manager: owns every task, starts them in order, stops them in order.
//!
//! Start: pre-flight (the server knows each kind and lets us list and watch it), informers, first
//! lists, workers. Stop: no new reconciles, reconciles in work end (within the grace period), informers
//! end, events are flushed. This is the only place in the run-side rooms that listens to signals.

mod house;
mod preflight;
mod signals;

use std::collections::HashSet;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use futures::future::BoxFuture;
use opkit_cache::Scope;
use opkit_client::{Kind, RestClient};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::house::House;
use self::signals::Signals;
use crate::controller::ControllerSpec;
use crate::status_schema::report_status_gaps;
use crate::{AnyController, ManagerError, ReconcileLog};

/// How a [`Manager`] runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManagerOptions {
    /// Which namespaces are watched; all by default.
    pub scope: Scope,
    /// How long reconciles in work may take to end after a stop; 30 s by default.
    pub grace_period: Duration,
    /// How long the first lists may take; 2 min by default.
    pub cache_sync_timeout: Duration,
    /// Where reconciles are recorded.
    pub log: ReconcileLog,
    /// Becomes true when the workers have started.
    pub ready: watch::Sender<bool>,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        ManagerOptions {
            scope: Scope::All,
            grace_period: Duration::from_secs(30),
            cache_sync_timeout: Duration::from_secs(120),
            log: ReconcileLog::default(),
            ready: watch::Sender::new(false),
        }
    }
}

type Runnable = Box<
    dyn FnOnce(
            CancellationToken,
        ) -> BoxFuture<'static, Result<(), Box<dyn std::error::Error + Send + Sync>>>
        + Send,
>;

/// Runs controllers against one cluster.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_controller::{Action, Context, Controller, Manager, ManagerOptions, Result};
///
/// async fn run(client: kube::Client) -> Result {
///     let controller = Controller::new(|_: Arc<ConfigMap>, _: Context| async {
///         Ok(Action::await_change())
///     });
///     let manager = Manager::new("map-operator", client, ManagerOptions::default());
///     manager.controller(controller).run_until_signal().await?;
///     Ok(())
/// }
/// ```
pub struct Manager {
    operator: String,
    client: RestClient,
    options: ManagerOptions,
    controllers: Vec<ControllerSpec>,
    runnables: Vec<(String, Runnable)>,
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("operator", &self.operator)
            .field("controllers", &self.controllers)
            .finish_non_exhaustive()
    }
}

impl Manager {
    /// A manager without controllers, for the operator of this name.
    pub fn new(operator: impl Into<String>, client: kube::Client, options: ManagerOptions) -> Self {
        Manager {
            operator: operator.into(),
            client: RestClient::new(client),
            options,
            controllers: Vec::new(),
            runnables: Vec::new(),
        }
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: impl Into<AnyController>) -> Self {
        self.controllers.push(controller.into().spec);
        self
    }

    /// Adds a task that runs from the start until its token is cancelled. If it fails, all stops.
    pub fn runnable(
        mut self,
        name: impl Into<String>,
        run: impl FnOnce(
            CancellationToken,
        )
            -> BoxFuture<'static, Result<(), Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + 'static,
    ) -> Self {
        self.runnables.push((name.into(), Box::new(run)));
        self
    }

    /// Runs until SIGTERM or SIGINT; a second one ends it at once.
    ///
    /// # Errors
    /// As [`run`](Manager::run); [`ManagerError::Interrupted`] after a second signal.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping it stops everything at once, reconciles in work included.
    pub async fn run_until_signal(self) -> Result<(), ManagerError> {
        let mut signals = Signals::new().map_err(ManagerError::Signals)?;
        let stop = CancellationToken::new();
        let mut run = pin!(self.run(stop.clone()));
        tokio::select! {
            result = &mut run => return result,
            signal = signals.next() => info!(signal, "stopping"),
        }
        stop.cancel();
        tokio::select! {
            result = &mut run => result,
            _ = signals.next() => Err(ManagerError::Interrupted),
        }
    }

    /// Runs until `stop`.
    ///
    /// # Errors
    /// When the server does not know a kind, a permission is missing, the first lists do not come,
    /// a runnable fails, or reconciles do not end in time.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping it stops everything at once, reconciles in work included. Cancel
    /// `stop` instead.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ManagerError> {
        let mut names = HashSet::new();
        if let Some(twice) = self
            .controllers
            .iter()
            .find(|spec| !names.insert(&spec.name))
        {
            return Err(ManagerError::NameTaken(twice.name.clone()));
        }
        let mut house = House::new(&self);
        let mut runnables = JoinSet::new();
        for (name, run) in self.runnables {
            let stop = house.stop_runnables.clone();
            runnables.spawn(async move {
                run(stop)
                    .await
                    .map_err(|cause| ManagerError::Runnable { name, cause })
            });
        }
        let (client, scope) = (&self.client, &self.options.scope);
        let controllers = self.controllers;
        let kinds: HashSet<Kind> = controllers
            .iter()
            .flat_map(|spec| &spec.sources)
            .map(|s| s.kind.clone())
            .collect();
        let started = async {
            let own: Vec<Kind> = controllers.iter().map(|spec| spec.kind.clone()).collect();
            let (checked, ()) = futures::join!(
                preflight::check(&self.operator, client, scope, kinds),
                report_status_gaps(client, &own),
            );
            checked?;
            house
                .start(controllers, self.options.cache_sync_timeout)
                .await
        };
        let started = tokio::select! {
            biased;
            error = first_failure(&mut runnables) => Some(Err(error)),
            started = stop.run_until_cancelled(started) => started,
        };
        house.runnables = runnables;
        let result = match started {
            Some(Ok(())) => {
                self.options.ready.send_replace(true);
                info!(operator = self.operator, "running");
                house.wait(&stop).await
            }
            Some(Err(error)) => {
                // Why it did not start is more than how it ended.
                let _ = house.stop(self.options.grace_period).await;
                return Err(error);
            }
            None => Ok(()),
        };
        self.options.ready.send_replace(false);
        let late = house.stop(self.options.grace_period).await;
        info!(operator = self.operator, "stopped");
        result.and(late)
    }
}

/// Waits until a runnable fails; for ever if none does.
async fn first_failure(runnables: &mut JoinSet<Result<(), ManagerError>>) -> ManagerError {
    while let Some(ended) = runnables.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error,
            Err(error) => return ManagerError::Internal(error),
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests;
