//! The error type of leader elections.

/// Error of a leader election: options that are not valid, or an election that is stuck.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderElectionError {
    /// The value of an option is not valid.
    #[error("the leader election option {field} {problem}")]
    Invalid {
        /// Name of the option.
        field: &'static str,
        /// Description of the problem.
        problem: String,
    },
    /// The namespace of the Lease is not set, and cannot be read from the pod's service account.
    #[error(
        "the namespace of the leader election's lease is not known: this process does not run in a pod that has its service account mounted; set --leader-election-namespace, or turn the election off with --leader-elect=false"
    )]
    NoNamespace(#[source] std::io::Error),
    /// This process holds the Lease but does not renew it.
    #[error("the lease {lease} is held by this process and was not renewed for {seconds} s")]
    NotRenewed {
        /// Namespace and name of the lease.
        lease: String,
        /// Time since the last renewal, in seconds.
        seconds: u64,
    },
    /// This process has lost the Lease, but its leader-only work has not ended.
    #[error("the lease {lease} was lost {seconds} s ago, and the work of that term has not ended")]
    WorkNotEnded {
        /// Namespace and name of the lease.
        lease: String,
        /// Time since the loss of the Lease, in seconds.
        seconds: u64,
    },
}
