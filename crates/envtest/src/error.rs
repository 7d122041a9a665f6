//! Errors of the requests and waits of a test, as opposed to its failed assertions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{ConnectError, RequestError};

use crate::BinariesError;

/// Reason why a request or wait of a test failed, or why its control plane did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The embedded control plane does not start.
    #[error("cannot start the embedded control plane")]
    Start(#[source] opkit_apiserver::StartError),
    /// The control plane of real executables does not start, or has stopped.
    #[error("the control plane of real binaries does not run")]
    Binaries(#[source] Arc<BinariesError>),
    /// There is no usable configuration of an existing cluster.
    #[error("cannot find the cluster to test on")]
    Cluster(#[source] ConnectError),
    /// The control plane runs, but a client for it cannot be created.
    #[error("cannot create a client for the control plane: {cause}")]
    Client {
        /// Text of the cause.
        cause: String,
    },
    /// The environment names an unknown control plane.
    #[error("{variable} is {value:?}, which is not one of embedded, binaries, cluster")]
    Choice {
        /// Name of the variable.
        variable: &'static str,
        /// Value of the variable.
        value: String,
    },
    /// The control plane lacks a capability that this test needs; the test neither passes nor
    /// fails.
    #[error("the test is skipped: {reason}")]
    Skipped {
        /// Reason why the capability is missing.
        reason: String,
    },
    /// A CRD is installed, but not served.
    #[error("CRD {name} is not established within {timeout:?}")]
    NotEstablished {
        /// Name of the CRD.
        name: String,
        /// Time that the test waited.
        timeout: Duration,
    },
    /// The namespace of the test is not deleted.
    #[error(
        "namespace {namespace} still exists after {timeout:?}; check its objects for finalizers"
    )]
    NamespaceStays {
        /// Name of the namespace.
        namespace: String,
        /// Time that the test waited.
        timeout: Duration,
    },
    /// The control plane refuses a request of the test.
    #[error("the test cannot {what}")]
    Request {
        /// Operation that the test requested, such as "delete Namespace one".
        what: String,
        /// Error of the request.
        #[source]
        cause: Box<RequestError>,
    },
    /// An object cannot be decoded as its Rust type.
    #[error("{object} does not fit its Rust type")]
    Decode {
        /// Kind and name of the object.
        object: String,
        /// Decoding error.
        #[source]
        cause: serde_json::Error,
    },
    /// The operator stopped, or did not start.
    #[error("operator {name} does not run: {cause}")]
    Operator {
        /// Name of the operator.
        name: String,
        /// Text of the operator's error.
        cause: String,
    },
    /// An API server would refuse the CRDs or samples of an operator, or a conversion between two
    /// versions loses values.
    #[error("operator {name} is not sound\n{report}")]
    Unsound {
        /// Name of the operator.
        name: String,
        /// Problems, one per line.
        report: String,
    },
    /// Requests of an operator were denied, because its manifests do not grant the permissions.
    #[error(
        "requests of an operator were denied; add the missing permissions with `Operator::rule`, or \
         allow the denials with `ControlPlane::expect_denials`\n{report}"
    )]
    Denied {
        /// Denied requests, one per line.
        report: String,
    },
    /// The roles of an operator are not in force.
    #[error("the roles of ServiceAccount {service_account} are not in force within {timeout:?}")]
    NotGranted {
        /// Namespace and name of the ServiceAccount.
        service_account: String,
        /// Time that the test waited.
        timeout: Duration,
    },
    /// The server does not call a webhook of an operator.
    #[error("the server does not call the webhook {name} within {timeout:?}")]
    WebhookNotCalled {
        /// Name of the webhook.
        name: String,
        /// Time that the test waited.
        timeout: Duration,
    },
    /// A fixture cannot be read.
    #[error("cannot read the objects of {}: {report}", path.display())]
    Fixture {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the fixture cannot be read.
        report: String,
    },
    /// An object differs from its golden file.
    #[error("the object differs from {}\n{report}", path.display())]
    Golden {
        /// Path of the file.
        path: PathBuf,
        /// Expected and actual text.
        report: String,
    },
    /// A condition that had to hold for some time stopped holding.
    #[error("{what} after {passed:?}; the condition must hold for {time:?}\n{report}")]
    DoesNotStay {
        /// Object and its state.
        what: String,
        /// Time for which the condition held.
        passed: Duration,
        /// Time for which the condition had to hold.
        time: Duration,
        /// Object, its events and the last reconciles.
        report: String,
    },
    /// An expected state did not occur in time.
    #[error("{what} within {timeout:?}\n{report}")]
    Timeout {
        /// Object and expected state.
        what: String,
        /// Time that the test waited.
        timeout: Duration,
        /// Object, its events and the last reconciles.
        report: String,
    },
}

pub(crate) fn refused(what: String, cause: RequestError) -> TestError {
    TestError::Request {
        what,
        cause: Box::new(cause),
    }
}
