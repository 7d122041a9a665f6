//! The outcome of a reconcile.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// The outcome of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// Success: no further reconcile until something changes.
    Ok,
    /// Success, with a requeue.
    Requeue {
        /// Delay until the next reconcile.
        #[serde(rename = "afterSeconds", serialize_with = "seconds")]
        after: Duration,
    },
    /// Failure.
    Error {
        /// The error chain on one line.
        message: String,
        /// Delay until the retry; `None` if the object is retried at its next change.
        #[serde(rename = "retrySeconds", serialize_with = "optional_seconds")]
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// Reports whether the object is queued again without a change.
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

pub(super) fn seconds<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn optional_seconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => seconds(duration, serializer),
        None => serializer.serialize_none(),
    }
}
