//! Errors that stop an operator. The message of an error is one sentence, which the process prints
//! before it exits with code 1.

use std::net::SocketAddr;
use std::path::PathBuf;

use opkit_client::ConnectError;
use opkit_controller::{ManagerError, ServerError};

/// Reason why an operator did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// There is no usable configuration of a cluster.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A name is not valid in Kubernetes.
    #[error("{what} {name:?} is not valid: {problem}")]
    Name {
        /// Description of the name, such as "the operator's name".
        what: &'static str,
        /// Name that is not valid.
        name: String,
        /// Rule that the name breaks.
        problem: String,
    },
    /// A type of [`Operator::args`](crate::Operator::args) cannot be part of the command line.
    #[error("the type of flags {args} {problem}")]
    Flag {
        /// Type that declares the flags.
        args: &'static str,
        /// Problem of the type, with the name of the flag.
        problem: String,
    },
    /// The function that creates a state takes flags that the operator does not declare.
    #[error(
        "the state {state} takes {args}, which the operator does not declare: add .args::<{}>()",
        short(args)
    )]
    ArgsNotDeclared {
        /// Type of the state.
        state: &'static str,
        /// Type of the flags.
        args: &'static str,
    },
    /// The values of the flags that the operator declares cannot be parsed.
    #[error("cannot run {operator} with these arguments: {problem}")]
    Arguments {
        /// Name of the operator.
        operator: String,
        /// Problem that the parser reports.
        problem: String,
    },
    /// The controllers did not start, or stopped with an error.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Metrics, health probes or debug information cannot be served.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A webhook is not valid.
    #[error("{0}")]
    Webhook(String),
    /// The API server does not respond.
    #[error("cannot reach the API server {server}: {}", root(cause))]
    Unreachable {
        /// URL of the server.
        server: String,
        /// Cause of the failure. It is not the error's source, because the message already includes
        /// the innermost error.
        cause: ManagerError,
    },
    /// An additional cluster cannot be reached.
    #[error("cannot connect to the cluster {name}: {cause}")]
    Cluster {
        /// Name of the cluster.
        name: String,
        /// Cause of the failure. It is not the error's source, because the message already includes
        /// the cause.
        cause: opkit_controller::Error,
    },
    /// The log level cannot be parsed.
    #[error("{level:?} is not a log level")]
    LogLevel {
        /// Given log level.
        level: String,
        /// Parse error.
        #[source]
        cause: tracing_subscriber::filter::ParseError,
    },
    /// Traces cannot be sent.
    #[cfg(feature = "otlp")]
    #[error("cannot send traces as OTEL_EXPORTER_OTLP_ENDPOINT configures")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The debug server must not be reachable from other machines.
    #[error(
        "cannot serve debug information on {address}: it has no access control, choose a loopback address"
    )]
    DebugNotLoopback {
        /// Requested address.
        address: SocketAddr,
    },
    /// The address of the debug server cannot be written to its file.
    #[error("cannot write the debug address to {}", path.display())]
    DebugAddressFile {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        #[source]
        cause: std::io::Error,
    },
    /// The output of a command cannot be printed.
    #[error("cannot print {what}")]
    Print {
        /// Name of the output, such as "the manifests".
        what: &'static str,
        /// Cause of the failure.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Returns the name of a type without its path.
fn short(type_name: &str) -> &str {
    type_name.rsplit("::").next().unwrap_or(type_name)
}

/// Returns the text of the innermost cause of `error`. The outer errors only describe the request,
/// which the message already describes.
fn root(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
