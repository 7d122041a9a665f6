//! What can be wrong with a leader election.

/// A leader election that cannot be, or that does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderElectionError {
    /// An option has a value that it cannot have.
    #[error("the leader election option {field} {problem}")]
    Invalid {
        /// Which.
        field: &'static str,
        /// Why.
        problem: String,
    },
    /// The namespace of the lease is not given, and cannot be read from the pod's service account.
    #[error(
        "the namespace of the leader election's lease is not known: this process does not run in a pod that has its service account mounted; set --leader-election-namespace, or turn the election off with --leader-elect=false"
    )]
    NoNamespace(#[source] std::io::Error),
    /// The lease is held, but is not renewed any more.
    #[error("the lease {lease} is held by this process and was not renewed for {seconds} s")]
    NotRenewed {
        /// Namespace and name of the lease.
        lease: String,
        /// For how long.
        seconds: u64,
    },
    /// The lease was lost, but the work goes on.
    #[error("the lease {lease} was lost {seconds} s ago, and the work of that term has not ended")]
    WorkGoesOn {
        /// Namespace and name of the lease.
        lease: String,
        /// Since when.
        seconds: u64,
    },
}
