//! The `opkit` command.
//!
//! This crate only composes other crates: it starts control planes, builds and runs operators, and
//! shows their activity.

mod cluster;
mod control_plane;
mod dev;
mod endpoint;
mod explain;
mod kubeconfig;
mod output;
mod signals;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The operator SDK for Rust.
#[derive(Debug, Parser)]
#[command(name = "opkit", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build an operator and run it on an embedded control plane; rebuild and restart it after each
    /// edit
    Dev {
        /// Package of the operator [default: the package of the current directory, or the only
        /// operator of the workspace]
        operator: Option<String>,
        #[command(flatten)]
        control_plane: ControlPlaneArgs,
        /// Arguments for the operator
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Show the causes and results of an object's last reconciles, such as `robot/robot-one`
    Explain(explain::Args),
    /// Run only a control plane
    #[command(subcommand)]
    Cluster(ClusterCommand),
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Start the embedded control plane in the foreground, for any client
    Up {
        #[command(flatten)]
        control_plane: ControlPlaneArgs,
        /// Run only the API server, without the controllers of a cluster, as envtest does
        #[arg(long)]
        no_controllers: bool,
    },
}

/// Port and kubeconfig of the embedded control plane.
#[derive(Clone, Debug, Args)]
struct ControlPlaneArgs {
    /// Port to listen on; 0 chooses a free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Path to write the kubeconfig to
    #[arg(long, default_value = ".opkit/kubeconfig", value_name = "PATH")]
    kubeconfig_out: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut logged = Targets::new().with_default(LevelFilter::WARN);
    if let Command::Dev { .. } = &cli.command {
        // The view shows the features that the control plane does not model.
        logged = logged.with_target("opkit_apiserver::registry::unmodelled", LevelFilter::OFF);
    } else {
        logged = logged.with_target("opkit_apiserver::denials", LevelFilter::INFO);
    }
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .finish()
        .with(logged)
        .init();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| {
            let outcome = runtime.block_on(async {
                match cli.command {
                    Command::Dev {
                        operator,
                        control_plane,
                        arguments,
                    } => dev::run(operator.as_deref(), &control_plane, arguments).await,
                    Command::Explain(args) => explain::run(&args).await,
                    Command::Cluster(ClusterCommand::Up {
                        control_plane,
                        no_controllers,
                    }) => cluster::up(&control_plane, !no_controllers).await,
                }
            });
            // Tasks that still run for the control plane need not finish.
            runtime.shutdown_timeout(Duration::from_millis(200));
            outcome
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is the command's error output")]
fn report(error: &anyhow::Error) {
    eprintln!("opkit: {error:#}");
}
