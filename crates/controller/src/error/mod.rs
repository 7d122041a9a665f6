//! Errors: the opaque [`Error`] that a reconcile returns, and the typed errors of this crate.

mod calls;
mod permission;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use opkit_cache::SyncError;
use opkit_client::{Kind, RequestError, one_line};
use opkit_leaderelection::LeaderElectionError;

pub use self::calls::{ApplyError, ReadError, RecordError, WriteError};
pub use self::permission::{MissingPermissions, Permission};

/// Result of a reconcile, and of any other operation that fails with [`Error`].
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// The error of a reconcile: any error, with the time at which the object is retried.
///
/// `?` converts every error type to `Error`. `Display` and `Debug` print the whole chain of causes
/// on one line. Like anyhow's error, `Error` does not itself implement [`std::error::Error`],
/// because `?` could not convert every error type then.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::time::Duration;
/// use opkit::Error;
/// fn port(text: &str) -> Result<u16, Error> {
///     text.parse().map_err(Error::terminal) // retrying cannot help
/// }
/// assert_eq!(port("http").unwrap_err().to_string(), "invalid digit found in string");
/// let later = Error::retry_after(Duration::from_secs(30), Error::msg("the bucket is locked"));
/// ```
pub struct Error {
    cause: Box<dyn StdError + Send + Sync>,
    retry: Retry,
}

/// When the object is retried after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Backoff,
    After(Duration),
    AtNextChange,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Message(String);

impl Error {
    /// Returns an error that consists only of a message.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::from(Message(message.to_string()))
    }

    /// Returns an error from a boxed error. `?` cannot convert a boxed error.
    pub fn from_boxed(cause: Box<dyn StdError + Send + Sync>) -> Self {
        Self {
            cause,
            retry: Retry::Backoff,
        }
    }

    /// Returns `error` with a retry after `duration` instead of the object's backoff. If `duration`
    /// is below 1 ms, the backoff is used nevertheless.
    pub fn retry_after(duration: Duration, error: impl Into<Self>) -> Self {
        Self {
            retry: Retry::After(duration),
            ..error.into()
        }
    }

    /// Returns `error` without a retry: the object is reconciled again only when it, or an object
    /// that it depends on, changes.
    pub fn terminal(error: impl Into<Self>) -> Self {
        Self {
            retry: Retry::AtNextChange,
            ..error.into()
        }
    }

    /// Returns the error as `E`, if it was created from an `E`.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.cause.downcast_ref()
    }

    /// Reports whether `Context::apply` refused to change a child that has another owner.
    pub fn is_not_ours(&self) -> bool {
        self.downcast_ref::<ApplyError>()
            .is_some_and(ApplyError::is_not_ours)
    }

    /// Reports whether a request of opkit or of kube failed because the object changed since it was
    /// read.
    pub fn is_conflict(&self) -> bool {
        self.any(
            ApplyError::is_conflict,
            WriteError::is_conflict,
            RequestError::is_conflict,
            |status| status.code == 409 && status.reason == "Conflict",
        )
    }

    /// Reports whether a request of opkit or of kube failed because the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.any(
            ApplyError::is_not_found,
            WriteError::is_not_found,
            RequestError::is_not_found,
            |status| status.code == 404,
        )
    }

    /// Reports whether a request of opkit or of kube failed because the server, or a webhook, found
    /// the object not valid.
    pub fn is_invalid(&self) -> bool {
        self.any(
            |_| false,
            |_| false,
            RequestError::is_invalid,
            |status| status.code == 422,
        )
    }

    pub(crate) fn retry(&self) -> Retry {
        self.retry
    }

    /// Reports whether any error in the chain of causes is of one of the four types and satisfies
    /// the predicate for that type.
    fn any(
        &self,
        apply: fn(&ApplyError) -> bool,
        write: fn(&WriteError) -> bool,
        request: fn(&RequestError) -> bool,
        kube: fn(&kube::core::Status) -> bool,
    ) -> bool {
        let first: &(dyn StdError + 'static) = &*self.cause;
        std::iter::successors(Some(first), |error| (*error).source()).any(|error| {
            error.downcast_ref().is_some_and(apply)
                || error.downcast_ref().is_some_and(write)
                || error.downcast_ref().is_some_and(request)
                || error
                    .downcast_ref::<Box<RequestError>>()
                    .is_some_and(|it| request(it))
                || matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if kube(status))
        })
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self {
            cause: Box::new(error),
            retry: Retry::Backoff,
        }
    }
}

/// Converts to the error that the [`Error`] was created from. The time of the retry is lost.
impl From<Error> for Box<dyn StdError + Send + Sync> {
    fn from(error: Error) -> Self {
        error.cause
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&*self.cause))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ManagerError {
    /// Reports whether the manager failed to start because no API server was reachable.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Preflight(error) if error.is_unreachable())
    }
}

/// An error with which a manager stopped or failed to start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The server does not serve a kind.
    #[error(
        "the cluster does not serve the kind {kind}: install its CRD first (for a kind of this operator with `{operator} manifests | kubectl apply -f -`)"
    )]
    UnknownKind {
        /// Name of the operator.
        operator: String,
        /// The kind that is not served.
        kind: Box<Kind>,
    },
    /// The server does not grant the operator all permissions that it needs.
    #[error(
        "permissions are missing (the rules that `{operator} manifests` prints are sufficient): {missing}"
    )]
    Forbidden {
        /// Name of the operator.
        operator: String,
        /// All missing permissions.
        missing: MissingPermissions,
        /// The error of the first request that the server refused, if any, which names the user.
        #[source]
        cause: Option<RequestError>,
    },
    /// A request failed during the checks before the start, but not because of a missing kind or
    /// permission.
    #[error("cannot start")]
    Preflight(#[source] RequestError),
    /// The caches did not receive their initial lists in time.
    #[error("cannot start")]
    Sync(#[source] SyncError),
    /// A name is not valid in Kubernetes.
    #[error("{what} {name:?} is not valid: {problem}")]
    Name {
        /// The thing that has the name, such as `controller`.
        what: String,
        /// The name.
        name: String,
        /// The rule that the name breaks.
        problem: String,
    },
    /// Two controllers have the same name.
    #[error("two controllers are named {0:?}: give one of them another name with .named(..)")]
    NameTaken(String),
    /// A runnable returned an error.
    #[error("{name} failed")]
    Runnable {
        /// Name of the runnable.
        name: String,
        /// Error of the runnable.
        #[source]
        cause: Box<dyn StdError + Send + Sync>,
    },
    /// Reconciles or runnables did not stop within the grace period.
    #[error("these did not stop within {seconds} s: {}", late.join(", "))]
    Late {
        /// The grace period in seconds.
        seconds: u64,
        /// Controller and object of each late reconcile, and names of late runnables.
        late: Vec<String>,
    },
    /// The manager failed, and the shutdown failed as well.
    #[error("{first}; then {then}")]
    Several {
        /// The first error. It is not the `source` of this error, because the message contains both
        /// errors.
        first: Box<Self>,
        /// The error of the shutdown.
        then: Box<Self>,
    },
    /// A controller reads a state that the operator does not provide.
    #[error(
        "controller {controller} reads the state {state}, which is not provided: add .state(..)"
    )]
    NoState {
        /// Name of the controller.
        controller: String,
        /// Name of the state's Rust type.
        state: &'static str,
    },
    /// A webhook reads a state that the operator does not provide.
    #[error("a webhook reads the state {0}, which is not provided: add .state(..)")]
    NoWebhookState(&'static str),
    /// The function that creates a state failed.
    #[error("cannot create the state {state}")]
    State {
        /// Name of the state's Rust type.
        state: &'static str,
        /// Error of the function that creates the state.
        #[source]
        cause: Box<dyn StdError + Send + Sync>,
    },
    /// Two clusters have the same name.
    #[error("two clusters are named {0:?}")]
    ClusterTaken(String),
    /// Leader election failed.
    #[error("cannot elect a leader")]
    LeaderElection(#[source] LeaderElectionError),
    /// A second signal was received before the shutdown was complete.
    #[error("stopped at once by a second signal")]
    Interrupted,
    /// The signal handlers cannot be installed.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// A task of the manager panicked.
    #[error("a worker ended unexpectedly")]
    Internal(#[source] Box<dyn StdError + Send + Sync>),
}

#[cfg(test)]
mod tests;
