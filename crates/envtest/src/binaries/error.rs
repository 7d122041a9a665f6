//! Errors of real executables. Each message names a log to read or a command to run.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why a control plane of real executables does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BinariesError {
    /// An executable is missing.
    #[error(
        "there is no {name} at {}: run `cargo xtask control-plane`, or set KUBEBUILDER_ASSETS to a directory that holds \
         etcd, kube-apiserver and kubectl",
        path.display()
    )]
    Missing {
        /// Name of the executable.
        name: &'static str,
        /// Path at which the executable was expected.
        path: PathBuf,
    },
    /// There is no free port.
    #[error("cannot find a free port on the loopback address")]
    Port {
        /// I/O error.
        #[source]
        cause: io::Error,
    },
    /// The shell that supervises the processes did not start.
    #[error("cannot start the shell that supervises the control plane")]
    Watchdog {
        /// I/O error.
        #[source]
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        #[source]
        cause: io::Error,
    },
    /// No key for service accounts can be generated.
    #[error("cannot generate a key for service accounts: {cause}")]
    Key {
        /// Text of the cause; its type is not useful to callers.
        cause: String,
    },
    /// Another process listens on the port.
    #[error("{name} does not start, because its port is taken; its log: {}", log.display())]
    PortTaken {
        /// Name of the process.
        name: String,
        /// Path of the process's log.
        log: PathBuf,
    },
    /// A process ended before the test did.
    #[error("{name} ended with code {code}: {last}; its log: {}", log.display())]
    Ended {
        /// Name of the process.
        name: String,
        /// Exit code; 128 plus the signal's number if a signal ended the process.
        code: String,
        /// Last line of the process's log.
        last: String,
        /// Path of the process's log.
        log: PathBuf,
    },
    /// The server did not become ready in time.
    #[error("kube-apiserver is not ready after {timeout:?}: {last}; its log: {}", log.display())]
    NotReady {
        /// Time that the test waited.
        timeout: Duration,
        /// Last response to a readiness request, or its error.
        last: String,
        /// Path of the server's log.
        log: PathBuf,
    },
    /// The node that the pods run on, or another initial object, cannot be created.
    #[error("cannot create the node of the control plane")]
    Node {
        /// Error of the request.
        #[source]
        cause: Box<opkit_client::RequestError>,
    },
    /// The runtime of the control plane cannot start.
    #[error("cannot start a runtime for the control plane: {cause}")]
    Runtime {
        /// Text of the cause.
        cause: String,
    },
}
