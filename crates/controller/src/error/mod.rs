//! Errors: the opaque [`Error`] that a reconcile returns, and this room's own.

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

/// The result of a reconcile, and of anything else that may fail in any way.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Any error, and what it means for the retry of the object.
///
/// Made by `?` from every error type. `Display` and `Debug` print the whole chain in one line. It
/// is opaque as anyhow's is, and not itself a [`std::error::Error`], because then `?` could not
/// take every error.
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

/// When a failed object is tried again.
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
    /// An error that is only a message.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::from(Message(message.to_string()))
    }

    /// An error that was boxed already, which `?` cannot take.
    pub fn from_boxed(cause: Box<dyn StdError + Send + Sync>) -> Self {
        Self {
            cause,
            retry: Retry::Backoff,
        }
    }

    /// `error`, to be retried after `duration` instead of the object's backoff. Less than 1 ms is
    /// the backoff.
    pub fn retry_after(duration: Duration, error: impl Into<Self>) -> Self {
        Self {
            retry: Retry::After(duration),
            ..error.into()
        }
    }

    /// `error`, not to be retried before the object, or something it depends on, changes.
    pub fn terminal(error: impl Into<Self>) -> Self {
        Self {
            retry: Retry::AtNextChange,
            ..error.into()
        }
    }

    /// The error as `E`, if it was made from one.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.cause.downcast_ref()
    }

    /// Whether `Context::apply` refused to touch a child that belongs to somebody else.
    pub fn is_not_ours(&self) -> bool {
        self.downcast_ref::<ApplyError>()
            .is_some_and(ApplyError::is_not_ours)
    }

    /// Whether a request, of opkit or of kube, failed because the object changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.any(
            ApplyError::is_conflict,
            WriteError::is_conflict,
            RequestError::is_conflict,
            |status| status.code == 409 && status.reason == "Conflict",
        )
    }

    /// Whether a request, of opkit or of kube, failed because the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.any(
            ApplyError::is_not_found,
            WriteError::is_not_found,
            RequestError::is_not_found,
            |status| status.code == 404,
        )
    }

    pub(crate) fn retry(&self) -> Retry {
        self.retry
    }

    /// Whether an error in the chain is what the test for its type says.
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

/// Returns the error that this one was created from; the hint for the retry is lost.
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
    /// Whether no API server answered at the start.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Preflight(error) if error.is_unreachable())
    }
}

/// Why a manager ended, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The server does not serve a kind.
    #[error(
        "the cluster does not know the kind {kind}: install its CRD first (of an own kind with `{operator} manifests | kubectl apply -f -`)"
    )]
    UnknownKind {
        /// Who asks.
        operator: String,
        /// The kind.
        kind: Box<Kind>,
    },
    /// Permissions are missing.
    #[error(
        "permissions are missing (those that `{operator} manifests` prints are enough): {missing}"
    )]
    Forbidden {
        /// Who needs them.
        operator: String,
        /// All that are missing.
        missing: MissingPermissions,
        /// The first refusal of the server, if it refused a request; it names the user.
        #[source]
        cause: Option<RequestError>,
    },
    /// The first requests failed otherwise.
    #[error("cannot start")]
    Preflight(#[source] RequestError),
    /// The cache did not fill.
    #[error("cannot start")]
    Sync(#[source] SyncError),
    /// A name cannot be used in Kubernetes.
    #[error("{what} {name:?} is not valid: {problem}")]
    Name {
        /// What has the name.
        what: String,
        /// The name.
        name: String,
        /// The rule that it breaks.
        problem: String,
    },
    /// Two controllers have one name.
    #[error("two controllers are named {0:?}: tell them apart with .named(..)")]
    NameTaken(String),
    /// A runnable ended with an error.
    #[error("{name} failed")]
    Runnable {
        /// Which.
        name: String,
        /// Why.
        #[source]
        cause: Box<dyn StdError + Send + Sync>,
    },
    /// Something did not end in time after a stop.
    #[error("these did not end within {seconds} s of the stop: {}", late.join(", "))]
    Late {
        /// The grace period.
        seconds: u64,
        /// Controller and object of each reconcile, names of runnables.
        late: Vec<String>,
    },
    /// The end did not go well either.
    #[error("{first}; then {then}")]
    Several {
        /// Why it ended; not a source, because both are in the message.
        first: Box<Self>,
        /// What went wrong then.
        then: Box<Self>,
    },
    /// Nobody gave a controller its state.
    #[error("controller {controller} reads the state {state}, which nobody gives: add .state(..)")]
    NoState {
        /// The controller.
        controller: String,
        /// The type of the state.
        state: &'static str,
    },
    /// A state could not be created.
    #[error("cannot create the state {state}")]
    State {
        /// The type of the state.
        state: &'static str,
        /// Why.
        #[source]
        cause: Box<dyn StdError + Send + Sync>,
    },
    /// Two clusters have one name.
    #[error("two clusters are named {0:?}")]
    ClusterTaken(String),
    /// No leader can be elected.
    #[error("cannot elect a leader")]
    LeaderElection(#[source] LeaderElectionError),
    /// A second signal came before the stop was complete.
    #[error("stopped at once by a second signal")]
    Interrupted,
    /// Signals cannot be listened to.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// A task of ours panicked.
    #[error("a worker ended unexpectedly")]
    Internal(#[source] Box<dyn StdError + Send + Sync>),
}

#[cfg(test)]
mod tests;
