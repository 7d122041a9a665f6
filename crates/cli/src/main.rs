//! The `opkit` command.
//!
//! This crate only composes: it starts control planes, builds and runs operators, and shows what
//! happens.

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
    /// Build an operator and run it on an embedded control plane; an edit builds and starts it
    /// again.
    Dev {
        /// The package of the operator [default: that of the current directory, or the only one of
        /// the workspace]
        operator: Option<String>,
        #[command(flatten)]
        control_plane: ControlPlaneArgs,
        /// Arguments for the operator.
        #[arg(last = true, value_name = "ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Show why and how an object was reconciled lately, such as `robot/robot-one`.
    Explain(explain::Args),
    /// Run a control plane alone.
    #[command(subcommand)]
    Cluster(ClusterCommand),
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Start the embedded control plane in the foreground, for any client.
    Up(ControlPlaneArgs),
}

/// Where the embedded control plane listens, and where its kubeconfig goes.
#[derive(Clone, Debug, Args)]
struct ControlPlaneArgs {
    /// Port to listen on; a free one by default.
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Where to write the kubeconfig.
    #[arg(long, default_value = ".opkit/kubeconfig", value_name = "PATH")]
    kubeconfig_out: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut logged = Targets::new().with_default(LevelFilter::WARN);
    if let Command::Dev { .. } = &cli.command {
        // The view shows the features that the control plane does not model.
        logged = logged.with_target("opkit_apiserver::registry::unmodelled", LevelFilter::OFF);
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
                    Command::Cluster(ClusterCommand::Up(args)) => cluster::up(&args).await,
                }
            });
            // What still works for the control plane is not worth waiting for.
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

#[expect(clippy::print_stderr, reason = "this is where the command speaks")]
fn report(error: &anyhow::Error) {
    eprintln!("opkit: {error:#}");
}
