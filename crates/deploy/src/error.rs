//! Errors of deployments. Each message is one sentence that names the object and what to do.

use std::fmt;

use opkit_client::{DiscoveryError, RequestError};
use opkit_crds::CrdError;

use crate::ObjectReference;

/// Reason why an operator cannot be installed, deployed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// A request to the API server failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The kinds of the server cannot be read.
    #[error("cannot find out which kinds the cluster has")]
    Discovery(#[source] DiscoveryError),
    /// A CRD of the cluster or of the release cannot be read.
    #[error(transparent)]
    Crd(#[from] CrdError),
    /// The cluster does not have the kind of an object.
    #[error("cannot apply {object}: the cluster has no kind {} in {api_version}", object.kind)]
    UnknownKind {
        /// The object.
        object: Box<ObjectReference>,
        /// Group and version of the object.
        api_version: String,
    },
    /// An object cannot be identified.
    #[error("object {position} of the release has no {field}")]
    Incomplete {
        /// Position in the release, from 0.
        position: usize,
        /// Missing field.
        field: String,
    },
    /// An object belongs to another ApplySet.
    #[error(
        "{object} belongs to another ApplySet, {set}: another deployment of an operator of this name has it; undeploy that one first"
    )]
    BelongsToAnotherSet {
        /// The object.
        object: Box<ObjectReference>,
        /// Id of the other ApplySet.
        set: String,
    },
    /// A CRD is not served in time.
    #[error("the CRD {name} is not established after {seconds} s: {problem}")]
    NotEstablished {
        /// Name of the CRD.
        name: String,
        /// Time that was waited, in seconds.
        seconds: u64,
        /// Message of the API server.
        problem: String,
    },
    /// Objects of the kinds of CRDs exist.
    #[error(
        "objects exist, which would be deleted with their CRDs: {}; delete them, or use --force",
        crds.join(", ")
    )]
    Instances {
        /// Names of the CRDs with the numbers of their objects.
        crds: Vec<String>,
    },
    /// A Deployment is not available in time.
    #[error("the {deployment} is not available after {seconds} s: {problem}")]
    Rollout {
        /// The Deployment.
        deployment: Box<ObjectReference>,
        /// Time that was waited, in seconds.
        seconds: u64,
        /// State of the rollout, and the problem of a Pod.
        problem: String,
    },
    /// An object was not removed in time.
    #[error("{object} is still there after {seconds} s{}", Because(finalizers, problem.as_deref()))]
    NotRemoved {
        /// The object.
        object: Box<ObjectReference>,
        /// Time that was waited, in seconds.
        seconds: u64,
        /// Finalizers of the object.
        finalizers: Vec<String>,
        /// Message of the server about what is left in a namespace or of a CRD.
        problem: Option<String>,
    },
    /// The operator is not deployed in the namespace.
    #[error(
        "{operator} is not deployed in the namespace {namespace}: choose another with --namespace"
    )]
    NotDeployed {
        /// Name of the operator.
        operator: String,
        /// The namespace.
        namespace: String,
    },
    /// There is no revision to return to.
    #[error("{operator} has no {wanted} in the namespace {namespace}: {known}")]
    NoRevision {
        /// Name of the operator.
        operator: String,
        /// The namespace.
        namespace: String,
        /// The revision that was asked for.
        wanted: String,
        /// The revisions that exist.
        known: String,
    },
    /// Another deployment of the operator runs at the same time.
    #[error(
        "revision {revision} of {operator} was created by another deployment meanwhile: try again"
    )]
    Concurrent {
        /// Name of the operator.
        operator: String,
        /// Number of the revision.
        revision: u64,
    },
    /// A stored revision cannot be read.
    #[error("the Secret {secret} is not a revision that this version of opkit can read: {problem}")]
    Revision {
        /// Name of the Secret.
        secret: String,
        /// Problem of its content.
        problem: String,
    },
}

/// Finalizers, or the message of the server, as the end of a sentence.
struct Because<'a>(&'a [String], Option<&'a str>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.1, self.0) {
            (Some(problem), _) => write!(f, ": {problem}"),
            (None, []) => Ok(()),
            (None, names) => write!(f, ", because of its finalizers {}", names.join(", ")),
        }
    }
}
