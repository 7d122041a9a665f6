//! The `opkit` command.
//!
//! This crate only composes other crates: it starts control planes, builds and runs operators, and
//! shows their activity.

mod cluster;
mod connection;
mod control_plane;
mod crd;
mod deploy;
mod dev;
mod docs;
mod doctor;
mod endpoint;
mod envtest;
mod exit;
mod explain;
mod files;
mod kubeconfig;
mod lint;
mod migrate;
mod output;
mod plan;
mod plugins;
mod project;
mod shell;
mod signals;
mod types;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, CommandFactory, Parser, Subcommand};
use opkit_apiserver::ServiceAddress;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::envtest::{EnvtestCommand, Program};
use self::signals::StopSignals;

/// The operator SDK for Rust.
#[derive(Debug, Parser)]
#[command(
    name = "opkit",
    version,
    arg_required_else_help = true,
    after_help = "Example:
  opkit new robot-operator --domain example.com
  cd robot-operator && opkit dev"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create an operator in a new directory
    New(project::NewArgs),
    /// Create an operator in the current directory
    Init(project::InitArgs),
    /// Create the opkit project of a kubebuilder project
    Import(project::ImportArgs),
    /// Add a kind, version, webhook or controller to an operator
    #[command(subcommand, after_help = "Example:\n  opkit add api --kind Arm")]
    Add(project::AddCommand),
    /// Change switches of an operator
    Edit(project::EditArgs),
    /// Remove what `add` adds
    #[command(subcommand, after_help = "Example:\n  opkit remove api --kind Arm")]
    Remove(project::RemoveCommand),
    /// Move an operator to another version or source of opkit
    Upgrade(project::UpgradeArgs),
    /// Build an operator and run it on an embedded control plane; rebuild and restart it after each
    /// edit
    #[command(after_help = "\
Examples:
  opkit dev
  opkit dev robot-operator -- --log-level debug
  opkit dev --no-run        # then start the program that it prints in a debugger
  opkit dev --on-cluster --context staging")]
    Dev {
        /// Package of the operator [default: the package of the current directory, or the only
        /// operator of the workspace]
        operator: Option<String>,
        #[command(flatten)]
        control_plane: ControlPlaneArgs,
        #[command(flatten)]
        process: dev::ProcessArgs,
        #[command(flatten)]
        on: dev::OnClusterArgs,
        /// Arguments for the operator
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Show the causes and results of an object's last reconciles, such as `robot/robot-one`
    Explain(explain::Args),
    /// Run the tests of an operator on one control plane after the other
    Test(deploy::TestArgs),
    /// Print the manifests that an operator needs in a cluster, write them to files, or check files
    Manifests(deploy::ManifestsArgs),
    /// Check the CRDs of an operator, or of files, by the conventions of Kubernetes' API
    Lint(lint::LintArgs),
    /// Write the reference of an operator's kinds in Markdown, and their JSON Schemas
    Docs(docs::DocsArgs),
    /// Install the CRDs of an operator in a cluster
    Install(deploy::InstallArgs),
    /// Delete the CRDs of an operator from a cluster
    Uninstall(deploy::UninstallArgs),
    /// Run an operator on this machine, against a cluster
    Run(deploy::RunArgs),
    /// Show what a deployment would change, in the cluster and by the new operator
    Plan(plan::PlanArgs),
    /// Deploy an operator to a cluster, and wait until it runs
    Deploy(deploy::DeployArgs),
    /// Remove a deployed operator from a cluster
    Undeploy(deploy::UndeployArgs),
    /// Find out what is wrong with an operator in a cluster
    Doctor(doctor::DoctorArgs),
    /// Check the CRDs of an operator
    #[command(
        subcommand,
        after_help = "Example:\n  opkit crd check --against v0.1.0"
    )]
    Crd(crd::CrdCommand),
    /// Run only a control plane
    #[command(subcommand, after_help = "Example:\n  opkit cluster up")]
    Cluster(ClusterCommand),
    /// Generate types of kinds that other projects define
    #[command(
        subcommand,
        after_help = "Example:\n  opkit types from-crd certificates.yaml --out src/certificate.rs"
    )]
    Types(types::TypesCommand),
    /// Migrate objects of a cluster
    #[command(subcommand, after_help = "Example:\n  opkit migrate storage robots")]
    Migrate(migrate::MigrateCommand),
    /// Provide the programs that controller-runtime's envtest starts
    #[command(subcommand, after_help = "Example:\n  opkit envtest assets bin/k8s")]
    Envtest(EnvtestCommand),
    /// List the plugins: programs `opkit-NAME` on the PATH, which `opkit NAME` runs
    Plugins(plugins::PluginsArgs),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example:\n  opkit completion bash > ~/.local/share/bash-completion/completions/opkit"
    )]
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages
    #[command(after_help = "Example:\n  opkit man --out ~/.local/share/man/man1")]
    Man {
        /// Directory to write to
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Print the version
    #[command(after_help = "Example:\n  opkit version")]
    Version,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Start the embedded control plane in the foreground, for any client
    #[command(after_help = "\
Examples:
  opkit cluster up
  opkit cluster up --port 6443 --kubeconfig-out kubeconfig --no-controllers")]
    Up {
        #[command(flatten)]
        control_plane: ControlPlaneArgs,
        /// Run only the API server, without the controllers of a cluster, as envtest does
        #[arg(long)]
        no_controllers: bool,
        #[command(flatten)]
        audit: AuditArgs,
    },
}

/// The audit log of the control plane.
#[derive(Clone, Debug, Args)]
struct AuditArgs {
    /// Path of the audit policy, an object of the kind `Policy` of audit.k8s.io/v1
    #[arg(long, value_name = "PATH", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,
    /// Path to append audit events to, one JSON object on each line; `-` is standard output
    #[arg(long, value_name = "PATH", requires = "audit_policy_file")]
    audit_log_path: Option<PathBuf>,
}

/// Port, kubeconfig and Services of the embedded control plane.
#[derive(Clone, Debug, Args)]
struct ControlPlaneArgs {
    /// Port to listen on; 0 chooses a free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Path to write the kubeconfig to
    #[arg(long, default_value = ".opkit/kubeconfig", value_name = "PATH")]
    kubeconfig_out: PathBuf,
    /// Address of a program that serves the requests of the API server to a Service; can be
    /// repeated
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT")]
    service_address: Vec<ServiceAddress>,
}

fn main() -> ExitCode {
    let program = std::env::args_os()
        .next()
        .and_then(|name| Program::of_argument_zero(Path::new(&name)));
    match program {
        Some(program) => {
            log(Targets::new().with_default(LevelFilter::INFO));
            let arguments = std::env::args().skip(1).collect();
            finish(program.run(arguments))
        }
        None => {
            let cli = match Cli::try_parse() {
                Ok(cli) => cli,
                Err(error) => match plugin(&error) {
                    Some(plugin) => {
                        let arguments = std::env::args_os().skip(2).collect();
                        return finish(plugin.run(arguments));
                    }
                    None => error.exit(),
                },
            };
            let mut logged = Targets::new().with_default(LevelFilter::WARN);
            if let Command::Dev { .. } = &cli.command {
                // The view shows the features that the control plane does not model.
                let target = "opkit_apiserver::registry::unmodelled";
                logged = logged.with_target(target, LevelFilter::OFF);
            } else {
                logged = logged.with_target("opkit_apiserver::denials", LevelFilter::INFO);
            }
            log(logged);
            finish(async {
                let ended = match cli.command.handles_signals() {
                    true => cli.command.run().await,
                    false => StopSignals::listen()?.interrupt(cli.command.run()).await,
                };
                ended.map(|()| ExitCode::SUCCESS)
            })
        }
    }
}

/// Returns the plugin that is meant by a command that opkit does not have.
fn plugin(error: &clap::Error) -> Option<plugins::Plugin> {
    let is_unknown = error.kind() == clap::error::ErrorKind::InvalidSubcommand;
    let name = std::env::args_os().nth(1).filter(|_| is_unknown)?;
    let is_command = |name: &str| Cli::command().find_subcommand(name).is_some();
    match name.to_str().is_some_and(is_command) {
        // The unknown word is below one of opkit's own commands.
        true => None,
        false => plugins::find(&name),
    }
}

impl Command {
    /// Reports whether the command ends in its own way after a signal. The others are dropped.
    /// Commands that edit files at once, and may wait for an answer at the terminal, end as any
    /// program does.
    fn handles_signals(&self) -> bool {
        match self {
            Self::Dev { .. } | Self::Run(_) | Self::Cluster(_) | Self::Migrate(_) => true,
            Self::New(_)
            | Self::Init(_)
            | Self::Import(_)
            | Self::Add(_)
            | Self::Edit(_)
            | Self::Remove(_)
            | Self::Upgrade(_)
            | Self::Envtest(_)
            | Self::Plugins(_)
            | Self::Completion { .. }
            | Self::Man { .. }
            | Self::Version => true,
            Self::Explain(_)
            | Self::Test(_)
            | Self::Manifests(_)
            | Self::Lint(_)
            | Self::Docs(_)
            | Self::Install(_)
            | Self::Uninstall(_)
            | Self::Plan(_)
            | Self::Deploy(_)
            | Self::Undeploy(_)
            | Self::Doctor(_)
            | Self::Crd(_)
            | Self::Types(_) => false,
        }
    }

    async fn run(self) -> Result<()> {
        match self {
            Self::New(args) => project::new(args),
            Self::Init(args) => project::init(args),
            Self::Import(args) => project::import(&args),
            Self::Add(command) => command.run(),
            Self::Edit(args) => project::edit(args),
            Self::Remove(command) => command.run(),
            Self::Upgrade(args) => project::upgrade(&args),
            Self::Dev {
                operator,
                control_plane,
                process,
                on,
                arguments,
            } => dev::run(operator.as_deref(), &control_plane, process, on, arguments).await,
            Self::Explain(args) => explain::run(&args).await,
            Self::Cluster(ClusterCommand::Up {
                control_plane,
                no_controllers,
                audit,
            }) => cluster::up(&control_plane, !no_controllers, audit).await,
            Self::Crd(command) => command.run().await,
            Self::Types(command) => command.run().await,
            Self::Migrate(command) => command.run().await,
            Self::Envtest(command) => envtest::run(&command),
            Self::Test(args) => args.run().await,
            Self::Manifests(args) => args.run().await,
            Self::Lint(args) => args.run().await,
            Self::Docs(args) => args.run().await,
            Self::Doctor(args) => args.run().await,
            Self::Install(args) => args.run().await,
            Self::Uninstall(args) => args.run().await,
            Self::Run(args) => args.run().await,
            Self::Plan(args) => args.run().await,
            Self::Deploy(args) => args.run().await,
            Self::Undeploy(args) => args.run().await,
            Self::Plugins(args) => {
                let commands = Cli::command();
                let names = commands
                    .get_subcommands()
                    .map(|it| it.get_name().to_owned());
                args.run(&names.collect::<Vec<_>>())
            }
            Self::Completion { shell } => {
                shell::completion(shell, Cli::command());
                Ok(())
            }
            Self::Man { out } => shell::man(Cli::command(), &out),
            Self::Version => {
                shell::version();
                Ok(())
            }
        }
    }
}

/// Logs to standard error.
fn log(logged: Targets) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish()
        .with(logged)
        .init();
}

/// Runs a future to its end and reports its error.
fn finish(future: impl Future<Output = Result<ExitCode>>) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| {
            let outcome = runtime.block_on(future);
            // Tasks that still run for the control plane need not finish.
            runtime.shutdown_timeout(Duration::from_millis(200));
            outcome
        });
    outcome.unwrap_or_else(|error| {
        if let Some(code) = exit::silent(&error) {
            return code;
        }
        report(&error);
        exit::interrupted(&error).unwrap_or_else(|| project::exit_code(&error))
    })
}

#[expect(clippy::print_stderr, reason = "this is the command's error output")]
fn report(error: &anyhow::Error) {
    eprintln!("opkit: {error:#}");
}
