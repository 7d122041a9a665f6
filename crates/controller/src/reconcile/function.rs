//! The signatures that a reconcile function may have, and the functions without type parameters
//! that the workers call.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::TryFutureExt;
use futures::future::BoxFuture;
use opkit_cache::{AnyObject, CachedObject};
use opkit_client::Object;

use crate::context::{Context, Stateless};
use crate::error::{Error, Result};
use crate::object::Request;
use crate::reconcile::{Action, Cleanup};

/// A reconcile function: `async fn(Arc<K>, Context<S>) -> Result<Action, E>`, or with kube's
/// signature `async fn(Arc<K>, Arc<S>) -> Result<Action, E>`. `E` is [`Error`], or any type that
/// converts into [`Error`].
///
/// `M` is a marker type that distinguishes the two signatures; users never name it.
#[diagnostic::on_unimplemented(
    message = "this is not a reconcile function: `{Self}`",
    label = "neither `async fn(Arc<K>, Context<S>) -> Result<Action>` nor kube's `async fn(Arc<K>, Arc<S>) -> Result<Action, E>`",
    note = "write `#[opkit::reconcile]` above the function: it reports which part of the signature is wrong"
)]
pub trait Reconcile<M>: Send + Sync + 'static {
    /// The reconciled kind.
    type Kind: Object;
    /// Type of the state that the function reads.
    type State: Send + Sync + 'static;
    /// Whether the function is also called for objects that are being deleted if the controller
    /// declares no finalizer.
    const SEES_DELETION: bool;

    /// Reconciles one object.
    fn reconcile(
        &self,
        object: Arc<Self::Kind>,
        context: Context<Self::State>,
    ) -> BoxFuture<'static, Result<Action>>;
}

/// Marker type of functions that take a [`Context`].
#[derive(Debug)]
pub struct WithContext<K, S, E>(PhantomData<fn(K, S, E)>);

impl<F, K, S, E, Fut> Reconcile<WithContext<K, S, E>> for F
where
    F: Fn(Arc<K>, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    K: Object,
    S: Send + Sync + 'static,
    E: Into<Error> + 'static,
{
    type Kind = K;
    type State = S;
    const SEES_DELETION: bool = false;

    fn reconcile(&self, object: Arc<K>, context: Context<S>) -> BoxFuture<'static, Result<Action>> {
        converted(self(object, context))
    }
}

/// Marker type of functions with kube's signature, which take their state instead of a context.
#[derive(Debug)]
pub struct WithState<K, S, E>(PhantomData<fn(K, S, E)>);

impl<F, K, S, E, Fut> Reconcile<WithState<K, S, E>> for F
where
    F: Fn(Arc<K>, Arc<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    K: Object,
    S: Send + Sync + 'static,
    E: Into<Error> + 'static,
{
    type Kind = K;
    type State = S;
    const SEES_DELETION: bool = true;

    fn reconcile(&self, object: Arc<K>, context: Context<S>) -> BoxFuture<'static, Result<Action>> {
        converted(self(object, context.state_arc()))
    }
}

/// Converts the error of a future that a user's function returned to [`Error`].
pub(crate) fn converted<T: 'static, E: Into<Error> + 'static>(
    function: impl Future<Output = Result<T, E>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    Box::pin(function.map_err(Into::into))
}

/// The function that a worker calls for a request, without type parameters.
#[derive(Debug, Clone)]
pub(crate) enum Reconciler {
    /// Function that takes the object; called only while the object exists.
    Object {
        function: Function<Action>,
        sees_deletion: bool,
    },
    /// Function that takes the key; also called after the object is deleted.
    Key(KeyFunction),
}

impl Reconciler {
    /// Reports whether the function is called for objects that are being deleted.
    pub(crate) fn sees_deletion(&self) -> bool {
        match self {
            Self::Object { sees_deletion, .. } => *sees_deletion,
            Self::Key(_) => true,
        }
    }
}

type ErasedKey = dyn Fn(Request, Stateless) -> BoxFuture<'static, Result<Action>> + Send + Sync;

/// A function that takes a key, without type parameters.
#[derive(Clone)]
pub(crate) struct KeyFunction(Arc<ErasedKey>);

impl fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFunction")
    }
}

impl KeyFunction {
    pub(crate) fn new<S, F, E, Fut>(function: F) -> Self
    where
        S: Send + Sync + 'static,
        F: Fn(Request, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        Self(Arc::new(move |request, context: Stateless| {
            match context.with_state::<S>() {
                Ok(context) => converted(function(request, context)),
                Err(error) => Box::pin(async { Err(error) }),
            }
        }))
    }

    pub(crate) fn call(
        &self,
        request: Request,
        context: Stateless,
    ) -> BoxFuture<'static, Result<Action>> {
        (self.0)(request, context)
    }
}

type Erased<T> = dyn Fn(AnyObject, Stateless) -> BoxFuture<'static, Result<T>> + Send + Sync;

/// A declared finalizer: its name and its cleanup function.
#[derive(Debug)]
pub(crate) struct Finalizer {
    pub(crate) name: String,
    pub(crate) function: Function<Cleanup>,
}

/// A function that takes an object, without type parameters.
pub(crate) struct Function<T>(Arc<Erased<T>>);

impl<T> Clone for Function<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Function<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

impl<T: 'static> Function<T> {
    pub(crate) fn new<K: CachedObject, S: Send + Sync + 'static>(
        function: impl Fn(Arc<K>, Context<S>) -> BoxFuture<'static, Result<T>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |object: AnyObject, context: Stateless| {
            let Ok(object) = object.into_any().downcast::<K>() else {
                return Box::pin(async {
                    Err(Error::msg("internal: the object has another type"))
                });
            };
            match context.with_state() {
                Ok(context) => function(object, context),
                Err(error) => Box::pin(async { Err(error) }),
            }
        }))
    }

    pub(crate) fn call(
        &self,
        object: AnyObject,
        context: Stateless,
    ) -> BoxFuture<'static, Result<T>> {
        (self.0)(object, context)
    }
}
