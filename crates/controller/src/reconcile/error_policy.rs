//! The user's error policy: decides when an object is retried after an error.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use opkit_cache::{AnyObject, CachedObject};

use crate::context::Stateless;
use crate::error::{Error, Retry};
use crate::reconcile::Action;

type Erased = dyn Fn(AnyObject, Error, Stateless) -> Error + Send + Sync;

/// A user's error policy without type parameters.
pub(crate) struct ErrorPolicy(Box<Erased>);

impl fmt::Debug for ErrorPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorPolicy")
    }
}

impl ErrorPolicy {
    pub(crate) fn new<K, S, E, R>(
        policy: impl Fn(Arc<K>, &E, Arc<S>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        K: CachedObject,
        S: Send + Sync + 'static,
        E: StdError + Send + Sync + 'static,
        R: Into<Option<Action>>,
    {
        Self(Box::new(move |object, error, context| {
            // A retry that the reconcile function chose itself has precedence.
            if error.retry() != Retry::Backoff {
                return error;
            }
            let object = object.into_any().downcast::<K>();
            let (Some(cause), Ok(object), Ok(context)) =
                (error.downcast_ref(), object, context.with_state::<S>())
            else {
                return error;
            };
            match policy(object, cause, context.state_arc()).into() {
                None => error,
                Some(action) => match action.requeue_after() {
                    Some(after) => Error::retry_after(after, error),
                    None => Error::terminal(error),
                },
            }
        }))
    }

    /// Calls the policy and returns `error` with the retry that the policy decides.
    pub(crate) fn decide(&self, object: AnyObject, error: Error, context: Stateless) -> Error {
        (self.0)(object, error, context)
    }
}
