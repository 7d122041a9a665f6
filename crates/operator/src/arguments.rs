//! The command line of an operator's binary.

mod own;

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, ValueEnum};
use opkit_apimachinery::names::check_dns_subdomain;
use opkit_client::{ClientOptions, ClusterSelection, ConnectError, SelectedCluster};

use crate::operator::{WEBHOOK_PORT, check_host};

pub(crate) use self::own::CommandLine;
pub(crate) use self::own::{ArgsType, ParsedArgs};

/// Arguments of an operator's binary, without clap subcommands: the command is an argument, so that
/// flags are valid before and after the command. There are no argument groups, because the names of
/// groups could collide with the names of an operator's own types.
#[derive(Debug, Parser)]
#[command(about = None, disable_version_flag = true)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Command to run
    #[arg(id = "opkit-command", value_name = "COMMAND")]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Command {
    /// Run the operator (the default)
    Run,
    /// Print the manifests that the operator needs in a cluster, as YAML: CRDs, a Deployment with
    /// these flags, and the permissions for these flags
    Manifests,
    /// Print what the operator would change in a cluster, as JSON for `opkit plan`
    #[value(hide = true)]
    Plan,
    /// Print the version
    Version,
}

/// Flags and environment variables, with the names that controller-runtime and kubebuilder use.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Flags {
    /// Kubeconfig of the cluster [default: KUBECONFIG, the pod's service account, ~/.kube/config]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Namespaces to watch, separated by commas [default: the namespaces that the operator
    /// declares, its own if it is limited to one, or all]
    #[arg(
        long,
        env = "WATCH_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    pub(crate) namespace: Vec<String>,

    /// Serve metrics on this address, such as :8443; 0 turns the server off [default: 0, and :8443
    /// in the Deployment that `manifests` prints]
    #[arg(long, value_name = "ADDRESS", value_parser = bind_address)]
    pub(crate) metrics_bind_address: Option<BindAddress>,

    /// Serve metrics over TLS, and only to clients that are authorized to read them [default: on
    /// any address but loopback]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) metrics_secure: Option<bool>,

    /// Directory with tls.crt and tls.key for the metrics server [default: a self-signed
    /// certificate]
    #[arg(long, value_name = "PATH")]
    pub(crate) metrics_cert_path: Option<PathBuf>,

    /// Serve /healthz and /readyz on this address, such as :8081; 0 turns the server off [default:
    /// 0, and :8081 in the Deployment that `manifests` prints]
    #[arg(long, value_name = "ADDRESS", value_parser = bind_address)]
    pub(crate) health_probe_bind_address: Option<BindAddress>,

    /// Serve webhooks on this port; 0 turns the server off
    #[arg(long, default_value_t = WEBHOOK_PORT, value_name = "PORT")]
    pub(crate) webhook_port: u16,

    /// Directory with tls.crt and tls.key for the webhook server [default: the operator's own
    /// certificate]
    #[arg(long, value_name = "PATH")]
    pub(crate) webhook_cert_path: Option<PathBuf>,

    /// Further DNS names and IP addresses in the operator's own webhook certificate, separated by
    /// commas, for webhooks that are called by a URL or by another Service
    #[arg(long, value_delimiter = ',', value_name = "HOST", value_parser = host)]
    pub(crate) webhook_host: Vec<String>,

    /// Secret with the operator's own webhook certificates [default:
    /// <operator>-webhook-certificates]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub(crate) webhook_secret: Option<String>,

    /// Time for which the webhook server accepts connections after a signal, in seconds: until the
    /// API server has seen that the pod ends
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) webhook_shutdown_delay: Duration,

    /// First part of the names of the webhook configurations [default: the operator's name]
    #[arg(long, value_name = "PREFIX", value_parser = object_name)]
    pub(crate) webhook_configuration_prefix: Option<String>,

    /// Let clients of the webhook server and of a secure metrics server use HTTP/2
    #[arg(long)]
    pub(crate) enable_http2: bool,

    /// Elect a leader: only one replica reconciles at a time
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pub(crate) leader_elect: Option<bool>,

    /// Namespace of the leader election Lease [default: the pod's namespace]
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_election_namespace: Option<String>,

    /// Time in which all tasks must stop after a signal, in seconds
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) graceful_shutdown_timeout: Duration,

    /// Log level: error, warn, info, debug, trace, or tracing directives
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: String,

    /// Log format
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// Serve debug information on this loopback address, such as 127.0.0.1:0
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) debug_bind_address: Option<SocketAddr>,

    /// Write the address of the debug server to this file once it listens
    #[arg(long, value_name = "PATH", requires = "debug_bind_address")]
    pub(crate) debug_address_file: Option<PathBuf>,

    /// Format of `manifests`: YAML, or the JSON that `opkit manifests` renders from
    #[arg(
        id = "opkit-output",
        long = "opkit-output",
        default_value = "yaml",
        value_name = "FORMAT",
        hide = true
    )]
    pub(crate) output: OutputFormat,

    /// Include the values of changed fields in debug information, except those of Secrets [default:
    /// only names and paths of fields, and numbers of the status]
    #[arg(long)]
    pub(crate) record_values: bool,
}

impl Flags {
    /// Creates a client with `options` for the cluster that the flags select.
    pub(crate) async fn connect(
        &self,
        options: ClientOptions,
    ) -> Result<SelectedCluster, ConnectError> {
        let mut selection = ClusterSelection::default();
        selection.kubeconfig.clone_from(&self.kubeconfig);
        selection.context.clone_from(&self.context);
        selection.connect(options).await
    }
}

/// Address that a server listens on; `None` turns the server off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BindAddress(pub(crate) Option<SocketAddr>);

/// Parses `0` (no server), `:8080` (every IPv6 and IPv4 address of the machine), or an address with
/// a port.
fn bind_address(text: &str) -> Result<BindAddress, String> {
    if text.is_empty() || text == "0" {
        return Ok(BindAddress(None));
    }
    let address = match text.strip_prefix(':') {
        Some(port) => port
            .parse()
            .map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
            .ok(),
        None => text.replace("localhost:", "127.0.0.1:").parse().ok(),
    };
    let expected = "it must be 0, :PORT or ADDRESS:PORT";
    let address = address.ok_or_else(|| expected.to_owned())?;
    Ok(BindAddress(Some(address)))
}

/// Parses an IP address or a DNS name.
fn host(text: &str) -> Result<String, String> {
    check_host(text).map(|()| text.to_owned())
}

/// Parses the name of an object, or the first part of one.
fn object_name(text: &str) -> Result<String, String> {
    check_dns_subdomain(text).map(|()| text.to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let expected = |_| "it must be a number of seconds".to_owned();
    number.parse().map(Duration::from_secs).map_err(expected)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One YAML document for each object
    Yaml,
    /// The model of the operator
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text per event
    Text,
    /// One JSON object per event
    Json,
}

#[cfg(test)]
mod tests;
