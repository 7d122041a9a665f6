//! What can go wrong with real executables. Each sentence says what to look at or to do.

use std::{io, path::PathBuf, time::Duration};

/// Why a control plane of real executables does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BinariesError {
    /// An executable is not there.
    #[error(
        "there is no {name} at {}: run `cargo xtask control-plane`, or set KUBEBUILDER_ASSETS to a directory that holds \
         etcd, kube-apiserver and kubectl",
        path.display()
    )]
    Missing {
        /// What is not there.
        name: &'static str,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// No port is to be had.
    #[error("cannot find a free port on the loopback address")]
    Port {
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The shell that watches over the processes does not run.
    #[error("cannot start the shell that watches over the control plane")]
    Watchdog {
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// No key for service accounts can be made.
    #[error("cannot make a key for service accounts: {cause}")]
    Key {
        /// Why, in words: the cause is of no use to anybody.
        cause: String,
    },
    /// Another process listens where this one was to.
    #[error("{name} does not start, because its port is taken; its log: {}", log.display())]
    PortTaken {
        /// The process.
        name: String,
        /// Its log.
        log: PathBuf,
    },
    /// A process ended before the test did.
    #[error("{name} ended with code {code}: {last}; its log: {}", log.display())]
    Ended {
        /// The process.
        name: String,
        /// Its exit code; above 128, the signal and 128.
        code: String,
        /// The last line that it logged.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// The server does not answer in time.
    #[error("kube-apiserver is not ready after {timeout:?}: {last}; its log: {}", log.display())]
    NotReady {
        /// How long it was waited for.
        timeout: Duration,
        /// What it said last.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// The node that the pods run on, or something else that a cluster has, cannot be made.
    #[error("cannot make the node of the control plane")]
    Node {
        /// Why.
        #[source]
        cause: Box<opkit_client::RequestError>,
    },
    /// There are no threads for the control plane.
    #[error("cannot start a runtime for the control plane: {cause}")]
    Runtime {
        /// Why.
        cause: String,
    },
}
