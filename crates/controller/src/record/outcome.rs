//! The outcome of a reconcile.

use std::fmt;
use std::time::Duration;

/// The outcome of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Success. The object is not reconciled again until something changes.
    Ok,
    /// Success. The object is reconciled again after a delay.
    Requeue {
        /// Delay until the next reconcile.
        after: Duration,
    },
    /// The reconcile failed.
    Error {
        /// The error and its causes, on one line.
        message: String,
        /// Delay until the retry; `None` if the object is retried at its next change.
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// Reports whether the object is reconciled again even if nothing changes.
    pub(crate) fn is_queued_again(&self) -> bool {
        match self {
            Self::Ok => false,
            Self::Requeue { .. } => true,
            Self::Error { retry_after, .. } => retry_after.is_some(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Requeue { after } => write!(f, "ok, again in {after:?}"),
            Self::Error {
                message,
                retry_after: Some(retry),
            } => {
                write!(f, "error, again in {retry:?}: {message}")
            }
            Self::Error {
                message,
                retry_after: None,
            } => {
                write!(f, "error, again at the next change: {message}")
            }
        }
    }
}
