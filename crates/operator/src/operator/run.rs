//! Running an operator: from the command line, and from other programs.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use opkit_controller::{
    AnyRunnable, LeaderElectionOptions, Manager, ManagerOptions, MetricsRegistry, ReconcileLog,
    Result,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Operator;
use crate::arguments::{self, Arguments, Command, Flags};
use crate::debug::{DebugOptions, DebugServer, Subject};
use crate::{OperatorError, entry, logging, manifests, namespaces};

/// How [`Operator::run_with`] runs: what the command line says otherwise.
///
/// # Examples
/// ```
/// let mut options = opkit_operator::RunOptions::default();
/// options.namespaces = vec!["test-one".to_owned()];
/// let (log, mut ready) = (options.log.clone(), options.ready.subscribe());
/// assert!(!*ready.borrow_and_update());
/// assert!(log.records().is_empty());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// The namespaces to hold the operator to; empty for the operator's own choice.
    pub namespaces: Vec<String>,
    /// How long everything may take to end after a stop.
    pub grace_period: Duration,
    /// Whether to elect a leader: by default if the operator declares a lease and the namespace for it
    /// is known.
    pub leader_elect: Option<bool>,
    /// The namespace of the lease; that of the pod by default.
    pub leader_election_namespace: Option<String>,
    /// Where metrics are registered; keep a clone to read them.
    pub metrics: MetricsRegistry,
    /// Where reconciles are recorded; keep a clone to read it.
    pub log: ReconcileLog,
    /// Becomes true when the caches are filled and the workers have started; subscribe to wait.
    pub ready: watch::Sender<bool>,
    debug: Option<DebugOptions>,
}

impl Default for RunOptions {
    fn default() -> Self {
        let ManagerOptions {
            grace_period,
            log,
            metrics,
            ready,
            ..
        } = ManagerOptions::default();
        RunOptions {
            namespaces: Vec::new(),
            grace_period,
            leader_elect: None,
            leader_election_namespace: None,
            metrics,
            log,
            ready,
            debug: None,
        }
    }
}

impl Operator {
    /// Does what the command line says: `run` (the default) until SIGTERM or SIGINT, `manifests`,
    /// `version`. Arguments that cannot be understood, and `--help`, end the process as usual.
    ///
    /// # Errors
    /// One clear sentence, whatever it is: no kubeconfig, a broken one, an unreachable server, an
    /// unknown kind, a missing permission.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping it abandons what runs.
    pub async fn run(self) -> Result {
        let arguments = arguments::parse(&self.name, std::env::args_os());
        let Arguments { command, flags } = arguments.unwrap_or_else(|error| error.exit());
        match command.unwrap_or(Command::Run) {
            Command::Manifests => {
                let elects = flags.leader_elect.unwrap_or(self.leader_election.is_some());
                let rbac = self.rbac(&flags.namespace, elects, flags.protects_metrics());
                Ok(print(
                    "the manifests",
                    &manifests::print(&self.crds, &rbac)?,
                )?)
            }
            Command::Version => {
                let version = entry::version().unwrap_or("unknown");
                let opkit = env!("CARGO_PKG_VERSION");
                let text = format!("{} {version} (opkit {opkit})\n", self.name);
                Ok(print("the version", &text)?)
            }
            Command::Run => self.run_until_signal(flags).await,
        }
    }

    async fn run_until_signal(self, flags: Flags) -> Result {
        logging::start(&flags.log_level, flags.log_format)?;
        let connected = opkit_client::connect_named(flags.kubeconfig.as_deref()).await;
        let (client, server) = connected.map_err(OperatorError::Connect)?;
        let debug = flags.debug_bind_address.map(|address| DebugOptions {
            address,
            address_file: flags.debug_address_file.clone(),
        });
        let options = RunOptions {
            namespaces: flags.namespace,
            grace_period: flags.graceful_shutdown_timeout,
            leader_elect: flags.leader_elect,
            leader_election_namespace: flags.leader_election_namespace,
            debug,
            ..Default::default()
        };
        let manager = self.manager(client, options).await?;
        Ok(manager.run_until_signal().await.map_err(|cause| {
            if cause.is_unreachable() {
                OperatorError::Unreachable { server, cause }
            } else {
                OperatorError::Manager(cause)
            }
        })?)
    }

    /// Runs against `client` until `shutdown`, without arguments, signals or logging: for tests and
    /// for other programs.
    ///
    /// # Errors
    /// As [`run`](Operator::run).
    ///
    /// # Cancel safety
    /// Not cancel safe: cancel `shutdown` instead of dropping it.
    pub async fn run_with(
        self,
        client: kube::Client,
        options: RunOptions,
        shutdown: CancellationToken,
    ) -> Result {
        let manager = self.manager(client, options).await?;
        Ok(manager
            .run(shutdown)
            .await
            .map_err(OperatorError::Manager)?)
    }

    /// How to elect a leader, if one is to be.
    fn election(&self, options: &RunOptions) -> Option<LeaderElectionOptions> {
        let lease = self.leader_election.as_ref().unwrap_or(&self.name);
        let mut election = LeaderElectionOptions::new(lease);
        election.namespace = options.leader_election_namespace.clone();
        let by_default = self.leader_election.is_some() && election.knows_namespace();
        let elects = options.leader_elect.unwrap_or(by_default);
        elects.then_some(election)
    }

    async fn manager(self, client: kube::Client, options: RunOptions) -> Result<Manager> {
        let mut settings = ManagerOptions::default();
        settings.scope = namespaces::scope(&options.namespaces, &self.namespaces);
        settings.grace_period = options.grace_period;
        settings.permissions = self.declared().permissions();
        settings.leader_election = self.election(&options);
        settings.metrics = options.metrics;
        settings.log = options.log.clone();
        let ready = options.ready.subscribe();
        settings.ready = options.ready;
        for register in self.metrics {
            register(&settings.metrics);
        }
        let fence = settings.leader_election.as_ref().map(|it| it.fence.clone());
        let mut manager = Manager::new(self.name.clone(), client.clone(), settings);
        // What is made for reconciles writes while this process leads.
        let client = match fence {
            Some(fence) => fence.layer(client),
            None => client,
        };
        for make in self.states {
            let give = make(client.clone()).await?;
            manager = give(manager);
        }
        for setup in self.setup {
            manager = setup(manager);
        }
        let mut controllers = Vec::new();
        for controller in self.controllers {
            controllers.push((controller.name().to_owned(), controller.kind().clone()));
            manager = manager.controller(controller);
        }
        if let Some(debug) = &options.debug {
            let subject = Subject {
                operator: self.name,
                controllers,
                log: options.log,
                ready,
            };
            let server = Arc::new(DebugServer::listen(debug, subject).await?);
            manager = manager.runnable(AnyRunnable::server("the debug server", move |cx| {
                let server = server.clone();
                async move {
                    server.serve(cx.stop_token()).await;
                    Ok(())
                }
            }));
        }
        Ok(manager)
    }
}

fn print(what: &'static str, text: &str) -> Result<(), OperatorError> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        // `manifests | head` is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|cause| OperatorError::Print {
            what,
            cause: cause.into(),
        }),
    }
}
