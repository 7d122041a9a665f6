//! The command line of an operator's binary.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(about = None, disable_version_flag = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum Command {
    /// Run the operator (the default)
    Run,
    /// Print what the operator needs in a cluster, as YAML
    Manifests,
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kubeconfig of the cluster [default: KUBECONFIG, the pod's service account, ~/.kube/config]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Namespace to watch; several are separated by commas [default: the operator's choice]
    #[arg(
        long,
        global = true,
        env = "WATCH_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    pub(crate) namespace: Vec<String>,

    /// What to log: error, warn, info, debug, trace, or tracing directives
    #[arg(
        long,
        global = true,
        env = "RUST_LOG",
        default_value = "info",
        value_name = "LEVEL"
    )]
    pub(crate) log_level: String,

    /// How to log
    #[arg(long, global = true, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Serve debug information on this loopback address, such as 127.0.0.1:0
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) debug_bind_address: Option<SocketAddr>,

    /// Write the address of the debug server to this file once it listens
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        requires = "debug_bind_address"
    )]
    pub(crate) debug_address_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line for people
    Text,
    /// One JSON object per line
    Json,
}

/// Parses `arguments`, the first of which is the binary.
pub(crate) fn parse(
    operator: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Arguments, clap::Error> {
    let command = Arguments::command().bin_name(operator);
    let matches = command.try_get_matches_from(arguments)?;
    Arguments::from_arg_matches(&matches)
}

#[cfg(test)]
mod tests;
