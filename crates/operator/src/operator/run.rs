//! Running an operator, from the command line or from other programs.

use std::ffi::OsString;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{ClientOptions, RestClient, RestMapper, SelectedCluster, pod_namespace};
use opkit_controller::{
    AnyRunnable, Error, Health, HealthServer, HealthServerOptions, LeaderElectionOptions,
    LeaderWatchdog, Manager, ManagerOptions, MetricsRegistry, MetricsServer, MetricsServerOptions,
    ReconcileLog, Result, ShardingOptions, until_signal,
};
use opkit_webhook::{CertificateSource, WebhookRouter};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Operator, OwnCertificateOptions};
use crate::arguments::{Arguments, Command, CommandLine, Flags, OutputFormat, ParsedArgs};
use crate::debug::{DebugOptions, DebugServer, Subject};
use crate::{OperatorError, entry, logging, manifests, namespaces};

/// Options of [`Operator::run_with`]; on the command line the same settings are flags.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_operator as operator; }
/// let mut options = opkit::operator::RunOptions::default();
/// options.namespaces = vec!["test-one".to_owned()];
/// let (log, mut ready) = (options.log.clone(), options.ready.subscribe());
/// assert!(!*ready.borrow_and_update());
/// assert!(log.records().is_empty());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// Values of the operator's own [flags](Operator::args), as on a command line after the name of
    /// the binary. Environment variables of the flags are not read.
    pub args: Vec<OsString>,
    /// Namespaces to watch. An empty list selects the namespaces that the operator declares, or
    /// all.
    pub namespaces: Vec<String>,
    /// Time in which all tasks must stop after a shutdown was requested.
    pub grace_period: Duration,
    /// Whether to elect a leader; by default only if the operator declares a Lease.
    pub leader_elect: Option<bool>,
    /// Namespace of the Lease; the pod's namespace by default.
    pub leader_election_namespace: Option<String>,
    /// Whether the start fails if a permission or a kind is missing. Without this check, an
    /// operator starts, and its requests are refused.
    pub preflight: bool,
    /// Registry of the operator's metrics; keep a clone to read the metrics.
    pub metrics: MetricsRegistry,
    /// Log of the reconciles; keep a clone to read the log.
    pub log: ReconcileLog,
    /// Whether the caches are filled and the workers have started; subscribe to wait for `true`.
    pub ready: watch::Sender<bool>,
    /// Address to serve `/metrics` on; `None` turns the server off.
    pub metrics_bind_address: Option<SocketAddr>,
    /// Whether metrics are served over TLS and only to authorized clients; by default on any
    /// address but loopback.
    pub metrics_secure: Option<bool>,
    /// Directory with `tls.crt` and `tls.key` for the metrics server; a self-signed certificate by
    /// default.
    pub metrics_cert_path: Option<PathBuf>,
    /// Address to serve `/healthz` and `/readyz` on; `None` turns the server off.
    pub health_probe_bind_address: Option<SocketAddr>,
    /// Address to serve webhooks on over HTTPS; `None` turns the server off.
    pub webhook_bind_address: Option<SocketAddr>,
    /// Directory with `tls.crt` and `tls.key` for the webhook server, which are read again when
    /// they change.
    pub webhook_cert_path: Option<PathBuf>,
    /// Source of the certificate of the webhook server, in place of files.
    pub webhook_certificates: Option<CertificateSource>,
    /// Time between the start of a shutdown and the moment at which the webhook server accepts no
    /// more connections; 5 s by default, and at most half of the grace period.
    pub webhook_shutdown_delay: Duration,
    /// Whether clients of the webhook server and of a secure metrics server may use HTTP/2; `false`
    /// by default, because of the denial-of-service attacks on HTTP/2.
    pub enable_http2: bool,
    /// Settings of the operator's own webhook certificates.
    pub own_certificates: OwnCertificateOptions,
    /// First part of the names of the webhook configurations; the operator's name by default. For
    /// configurations that were renamed after they had been printed, as by a `namePrefix` of
    /// kustomize.
    pub webhook_configuration_prefix: Option<String>,
    /// Webhooks of the operator once it runs, to call them without a socket; subscribe to get them.
    pub webhook_router: watch::Sender<Option<Arc<WebhookRouter>>>,
    /// Addresses of the servers once they listen; subscribe to get a port that the operating system
    /// chose.
    pub servers: watch::Sender<ServerAddresses>,
    debug: Option<DebugOptions>,
}

/// Addresses that the servers of an operator listen on; `None` for a server that is off.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_operator as operator; }
/// let options = opkit::operator::RunOptions::default();
/// assert_eq!(options.servers.borrow().metrics, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerAddresses {
    /// Address of `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Address of `/healthz` and `/readyz`.
    pub health: Option<SocketAddr>,
    /// Address of the webhooks.
    pub webhook: Option<SocketAddr>,
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
        Self {
            args: Vec::new(),
            namespaces: Vec::new(),
            grace_period,
            leader_elect: None,
            leader_election_namespace: None,
            preflight: true,
            metrics,
            log,
            ready,
            metrics_bind_address: None,
            metrics_secure: None,
            metrics_cert_path: None,
            health_probe_bind_address: None,
            webhook_bind_address: None,
            webhook_cert_path: None,
            webhook_certificates: None,
            webhook_shutdown_delay: Duration::from_secs(5),
            enable_http2: false,
            own_certificates: OwnCertificateOptions::default(),
            webhook_configuration_prefix: None,
            webhook_router: watch::Sender::new(None),
            servers: watch::Sender::default(),
            debug: None,
        }
    }
}

impl From<Flags> for RunOptions {
    fn from(flags: Flags) -> Self {
        let debug = flags.debug_bind_address.map(|address| DebugOptions {
            address,
            address_file: flags.debug_address_file.clone(),
        });
        let log = ReconcileLog::default();
        log.record_values(flags.record_values);
        Self {
            log,
            namespaces: flags.namespace,
            grace_period: flags.graceful_shutdown_timeout,
            leader_elect: flags.leader_elect,
            leader_election_namespace: flags.leader_election_namespace,
            metrics_bind_address: flags.metrics_bind_address.and_then(|it| it.0),
            metrics_secure: flags.metrics_secure,
            metrics_cert_path: flags.metrics_cert_path,
            health_probe_bind_address: flags.health_probe_bind_address.and_then(|it| it.0),
            webhook_bind_address: Some(flags.webhook_port)
                .filter(|port| *port != 0)
                .map(|port| (Ipv6Addr::UNSPECIFIED, port).into()),
            webhook_cert_path: flags.webhook_cert_path,
            webhook_shutdown_delay: flags.webhook_shutdown_delay,
            enable_http2: flags.enable_http2,
            own_certificates: OwnCertificateOptions {
                hosts: flags.webhook_host,
                secret: flags.webhook_secret,
                ..Default::default()
            },
            webhook_configuration_prefix: flags.webhook_configuration_prefix,
            debug,
            ..Default::default()
        }
    }
}

impl Operator {
    /// Executes the command of the command line: `run` (the default) until SIGTERM or SIGINT,
    /// `manifests` or `version`. As usual with clap, `--help` and arguments that cannot be parsed
    /// exit the process.
    ///
    /// # Errors
    /// Returns an error of one sentence for each cause: a declared flag that collides with another
    /// flag, a missing or invalid kubeconfig, an unreachable server, an unknown kind, a missing
    /// permission.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future aborts the running tasks.
    pub async fn run(self) -> Result {
        let line = CommandLine::new(&self.name, &self.args)?;
        let parsed = line.parse(std::env::args_os());
        let (Arguments { command, flags }, args) = parsed.unwrap_or_else(|error| error.exit());
        match command.unwrap_or(Command::Run) {
            Command::Manifests => {
                self.check(&flags.namespace)?;
                let output = flags.output;
                let model = self.model(flags)?;
                let printed = match output {
                    OutputFormat::Yaml => manifests::yaml(&model)?,
                    OutputFormat::Json => manifests::json(&model)?,
                };
                Ok(print("the manifests", &printed)?)
            }
            Command::Version => {
                let version = entry::version().unwrap_or("unknown");
                let opkit = env!("CARGO_PKG_VERSION");
                let text = format!("{} {version} (opkit {opkit})\n", self.name);
                Ok(print("the version", &text)?)
            }
            Command::Plan => {
                let plan = self.connect_and_plan(flags, args).await?;
                Ok(print("the plan", &manifests::json(&plan)?)?)
            }
            Command::Run => self.run_until_signal(flags, args).await,
        }
    }

    async fn run_until_signal(self, flags: Flags, args: ParsedArgs) -> Result {
        let logging = logging::start(&self.name, &flags.log_level, flags.log_format)?;
        let result = self.connect_and_run(flags, args).await;
        logging.stop().await;
        result
    }

    async fn connect_and_run(self, flags: Flags, args: ParsedArgs) -> Result {
        let sending = ClientOptions::default();
        let metrics = MetricsRegistry::default();
        sending.metrics.register(&mut metrics.lock());
        let cluster = flags.connect(sending).await;
        let SelectedCluster { client, server, .. } = cluster.map_err(OperatorError::Connect)?;
        let options = RunOptions {
            metrics,
            ..RunOptions::from(flags)
        };
        let run = async |stop: CancellationToken| {
            let created = stop.run_until_cancelled(self.manager(client, options, args));
            let Some(manager) = created.await else {
                return Ok(());
            };
            let ran = manager?.run(stop).await;
            ran.map_err(|cause| match cause.is_unreachable() {
                true => OperatorError::Unreachable { server, cause },
                false => OperatorError::Manager(cause),
            })?;
            Ok(())
        };
        // Signals are handled before any state is created, because creating one may take any time.
        until_signal(run).await
    }

    /// Runs against `client` until `shutdown` is cancelled, for tests and for other programs. The
    /// process's arguments, signals and logging are not used.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`run`](Operator::run).
    ///
    /// # Cancel safety
    /// Not cancel safe: cancel `shutdown` instead of dropping the future.
    pub async fn run_with(
        self,
        client: kube::Client,
        options: RunOptions,
        shutdown: CancellationToken,
    ) -> Result {
        let line = CommandLine::new(&self.name, &self.args)?;
        let args = line.parse_own(&options.args)?;
        // Creating a state may wait for an external system.
        let created = shutdown.run_until_cancelled(self.manager(client, options, args));
        let Some(manager) = created.await.transpose()? else {
            return Ok(());
        };
        Ok(manager
            .run(shutdown.clone())
            .await
            .map_err(OperatorError::Manager)?)
    }

    /// Returns the leader election's options, or `None` if no leader is elected.
    pub(super) fn election(&self, options: &RunOptions) -> Option<LeaderElectionOptions> {
        let declared = self.leader_election.clone();
        let mut election = declared.unwrap_or_else(|| LeaderElectionOptions::new(&self.name));
        if let Some(namespace) = &options.leader_election_namespace {
            election.namespace = Some(namespace.clone());
        }
        let is_declared = self.leader_election.is_some();
        let elects = options.leader_elect.unwrap_or(is_declared);
        elects.then_some(election)
    }

    /// Returns the options of a manager that runs with these options.
    pub(super) fn manager_options(
        &self,
        client: &kube::Client,
        options: &RunOptions,
    ) -> ManagerOptions {
        let mut settings = ManagerOptions::default();
        settings.scope = match self.namespaced {
            true => namespaces::scope(&options.namespaces, &[own_namespace(client)]),
            false => namespaces::scope(&options.namespaces, &self.namespaces),
        };
        settings.grace_period = options.grace_period;
        settings.permissions = self.declared().permissions();
        settings.preflight = options.preflight;
        settings.leader_election = self.election(options);
        settings.sharding = (self.sharding.zip(settings.leader_election.clone()))
            .map(|(by, election)| ShardingOptions::new(by, election));
        settings.metrics = options.metrics.clone();
        settings.event_api = self.event_api;
        settings.resync = self.resync;
        settings.log = options.log.clone();
        settings
    }

    async fn manager(
        mut self,
        client: kube::Client,
        options: RunOptions,
        args: ParsedArgs,
    ) -> Result<Manager> {
        self.check(&options.namespaces)?;
        self.webhooks.convert(&self.versions);
        options.own_certificates.check()?;
        let own = self.own_certificates(&options, &self.rbac(&options).own_namespace());
        let mut settings = self.manager_options(&client, &options);
        let watchdog = settings.leader_election.as_ref();
        let watchdog = watchdog.map(|_| settings.watchdog.subscribe());
        let ready = options.ready.subscribe();
        settings.ready = options.ready.clone();
        for register in self.metrics {
            register(&settings.metrics);
        }
        let names = RestMapper::new(client.clone());
        let webhook_client = client.clone();
        let (reader, owners) = (RestClient::new(client.clone()), settings.owners.clone());
        let mut manager = Manager::new(self.name.clone(), client, settings);
        for (name, connect) in self.clusters {
            let client = connect().await.map_err(|cause| OperatorError::Cluster {
                name: name.to_string(),
                cause,
            })?;
            manager = manager.cluster(name, client);
        }
        for state in self.states {
            let give = (state.make)(args.clone()).await?;
            manager = give(manager);
        }
        for setup in self.setup {
            manager = setup(manager);
        }
        for runnable in self.runnables {
            manager = manager.runnable(runnable);
        }
        let mut controllers = Vec::new();
        for controller in self.controllers {
            controllers.push((controller.name().to_owned(), controller.kind().clone()));
            manager = manager.controller(controller);
        }
        let mut listening = ServerAddresses::default();
        let mut readyz = self.readyz;
        // With a conversion webhook, the caches wait for the webhook, whose Service waits until
        // this process is ready.
        if self.webhooks.set.conversion.is_none() {
            readyz = with_caches(readyz, ready.clone());
        }
        let reads = self.webhooks.reads();
        if let Some(webhooks) = self.webhooks.start(&options, own, webhook_client).await? {
            listening.webhook = webhooks.address;
            if let Some(health) = webhooks.health {
                readyz = readyz.check("webhook", move || std::future::ready(health()));
            }
            manager = manager.reads(&reads).runnable(webhooks.runnable);
        }
        if let Some(server) = metrics_server(&options).await? {
            listening.metrics = Some(server.address());
            manager = manager.runnable(server);
        }
        if let Some(address) = options.health_probe_bind_address {
            let mut probes = HealthServerOptions::new(address);
            probes.healthz = with_watchdog(self.healthz, watchdog);
            probes.readyz = readyz;
            let server = HealthServer::listen(probes).await;
            let server = server.map_err(OperatorError::Server)?;
            listening.health = Some(server.address());
            manager = manager.runnable(server);
        }
        options.servers.send_replace(listening);
        if let Some(debug) = &options.debug {
            let subject = Subject {
                operator: self.name,
                controllers,
                log: options.log,
                metrics: options.metrics,
                names,
                client: reader,
                owners,
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

/// Returns the namespace of the pod. Outside of a pod, returns that of the kubeconfig.
fn own_namespace(client: &kube::Client) -> String {
    pod_namespace().unwrap_or_else(|| client.default_namespace().to_owned())
}

async fn metrics_server(options: &RunOptions) -> Result<Option<MetricsServer>, OperatorError> {
    let Some(address) = options.metrics_bind_address else {
        return Ok(None);
    };
    let mut serving = MetricsServerOptions::new(address);
    serving.certificates = options.metrics_cert_path.clone();
    serving.enable_http2 = options.enable_http2;
    if let Some(is_secure) = options.metrics_secure {
        serving.is_secure = is_secure;
    }
    Ok(Some(MetricsServer::listen(serving).await?))
}

/// Adds the health check of the leader election, if there is an election. The check passes before
/// the election starts.
fn with_watchdog(health: Health, dog: Option<watch::Receiver<Option<LeaderWatchdog>>>) -> Health {
    let Some(dog) = dog else { return health };
    health.check(LeaderWatchdog::NAME, move || {
        let result = match &*dog.borrow() {
            Some(dog) => dog.check(),
            None => Ok(()),
        };
        std::future::ready(result)
    })
}

/// Adds the check that the caches are filled.
fn with_caches(health: Health, ready: watch::Receiver<bool>) -> Health {
    health.check("caches", move || {
        let result = match *ready.borrow() {
            true => Ok(()),
            false => Err(Error::msg("the caches are not filled")),
        };
        std::future::ready(result)
    })
}

fn print(what: &'static str, text: &str) -> Result<(), OperatorError> {
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        // A closed pipe, as in `manifests | head`, is not an error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|cause| OperatorError::Print {
            what,
            cause: cause.into(),
        }),
    }
}
