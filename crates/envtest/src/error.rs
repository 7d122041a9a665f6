//! What can go wrong in a test before its assertions do.

use std::{path::PathBuf, sync::Arc, time::Duration};

use opkit_client::{ConnectError, RequestError};

use crate::BinariesError;

/// Why a step of a test did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The control plane does not start.
    #[error("cannot start the embedded control plane")]
    Start(#[source] opkit_apiserver::StartError),
    /// The control plane of real executables does not start, or has ended.
    #[error("the control plane of real binaries does not run")]
    Binaries(#[source] Arc<BinariesError>),
    /// There is no cluster.
    #[error("cannot find the cluster to test on")]
    Cluster(#[source] ConnectError),
    /// A control plane is there, but no client for it can be made.
    #[error("cannot make a client for the control plane: {cause}")]
    Client {
        /// Why, in words.
        cause: String,
    },
    /// The environment names a control plane that there is not.
    #[error("{variable} is {value:?}, which is none of embedded, binaries, cluster")]
    Choice {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// The control plane cannot run this test, which is then neither passed nor failed.
    #[error("the test is skipped: {reason}")]
    Skipped {
        /// What the control plane lacks.
        reason: String,
    },
    /// A CRD is installed, but not served.
    #[error("CRD {name} is not established within {timeout:?}")]
    NotEstablished {
        /// The CRD.
        name: String,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The namespace of the test stays.
    #[error(
        "namespace {namespace} is still there after {timeout:?}; something in it has a finalizer"
    )]
    NamespaceStays {
        /// The namespace.
        namespace: String,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The control plane refuses what the test asks for.
    #[error("the test cannot {what}")]
    Request {
        /// What the test wanted.
        what: String,
        /// What the server says.
        #[source]
        cause: Box<RequestError>,
    },
    /// An object is not what its type says.
    #[error("{object} does not fit its Rust type")]
    Decode {
        /// Its kind and name.
        object: String,
        /// What does not fit.
        #[source]
        cause: serde_json::Error,
    },
    /// The operator ended, or did not begin.
    #[error("operator {name} does not run: {cause}")]
    Operator {
        /// Its name.
        name: String,
        /// What it says.
        cause: String,
    },
    /// An object is not what a file says.
    #[error("{} is not as found\n{report}", path.display())]
    Golden {
        /// The file.
        path: PathBuf,
        /// What it says, and what was found.
        report: String,
    },
    /// A condition that had to hold for some time stopped holding.
    #[error("{what} after {passed:?}, and should stay as wanted for {time:?}\n{report}")]
    DoesNotStay {
        /// The object, and what became of it.
        what: String,
        /// How long it was as wanted.
        passed: Duration,
        /// How long it should be.
        time: Duration,
        /// The object, its events and the last reconciles.
        report: String,
    },
    /// What the test waits for did not happen.
    #[error("{what} within {timeout:?}\n{report}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        timeout: Duration,
        /// The object, its events and the last reconciles.
        report: String,
    },
}

pub(crate) fn refused(what: String, cause: RequestError) -> TestError {
    TestError::Request {
        what,
        cause: Box::new(cause),
    }
}
