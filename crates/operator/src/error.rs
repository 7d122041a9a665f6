//! Why an operator does not run. Each is one sentence; the process ends with it and code 1.

use std::net::SocketAddr;
use std::path::PathBuf;

use opkit_client::ConnectError;
use opkit_controller::{ManagerError, ServerError};

/// Why an operator does not run, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// No cluster.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A name cannot be used in Kubernetes.
    #[error("{what} {name:?} is not valid: {problem}")]
    Name {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
        /// The rule that it breaks.
        problem: String,
    },
    /// A type of the operator's own flags cannot be part of its command line.
    #[error("the type of flags {args} {problem}")]
    Flag {
        /// The type.
        args: &'static str,
        /// What is wrong with it; names the flag.
        problem: String,
    },
    /// A state takes flags that the operator does not declare.
    #[error(
        "the state {state} takes {args}, which the operator does not declare: add .args::<{}>()",
        short(args)
    )]
    ArgsNotDeclared {
        /// The type of the state.
        state: &'static str,
        /// The type of the flags.
        args: &'static str,
    },
    /// The values of the operator's own flags cannot be understood.
    #[error("cannot run {operator} with these arguments: {problem}")]
    Arguments {
        /// The operator.
        operator: String,
        /// What is wrong.
        problem: String,
    },
    /// The controllers did not start, or did not end well.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Metrics, health probes or debug information cannot be served.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// No API server answers.
    #[error("cannot reach the API server {server}: {}", root(cause))]
    Unreachable {
        /// Its URL.
        server: String,
        /// Why; not a source, because its last word is part of the message.
        cause: ManagerError,
    },
    /// A further cluster cannot be reached.
    #[error("cannot connect to the cluster {name}: {cause}")]
    Cluster {
        /// Its name.
        name: String,
        /// Why; not a source, because it is part of the message.
        cause: opkit_controller::Error,
    },
    /// The log level cannot be understood.
    #[error("{level:?} is not a log level")]
    LogLevel {
        /// What was given.
        level: String,
        /// Why.
        #[source]
        cause: tracing_subscriber::filter::ParseError,
    },
    /// Traces cannot be sent.
    #[cfg(feature = "otlp")]
    #[error("cannot send traces as OTEL_EXPORTER_OTLP_ENDPOINT says")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The debug server may not be reached from elsewhere.
    #[error(
        "cannot serve debug information on {address}: it has no access control, choose a loopback address"
    )]
    DebugNotLoopback {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The address of the debug server cannot be told.
    #[error("cannot write the debug address to {}", path.display())]
    DebugAddressFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// Something cannot be printed.
    #[error("cannot print {what}")]
    Print {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The name of a type without its path.
fn short(type_name: &str) -> &str {
    type_name.rsplit("::").next().unwrap_or(type_name)
}

/// The last cause, which alone says something new: the rest says which request it was.
fn root(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
