//! What can be a reconciler, and its type-erased form.

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

/// A reconciler: `async fn(Arc<K>, Context<S>) -> Result<Action, E>`, or in kube's shape
/// `async fn(Arc<K>, Arc<S>) -> Result<Action, E>`. `E` is [`Error`], or any type that it can be
/// made from.
///
/// `M` is a marker that tells function shapes apart; users never name it.
#[diagnostic::on_unimplemented(
    message = "this is not a reconcile function: `{Self}`",
    label = "neither `async fn(Arc<K>, Context<S>) -> Result<Action>` nor kube's `async fn(Arc<K>, Arc<S>) -> Result<Action, E>`",
    note = "write `#[opkit::reconcile]` above the function: it reports which part of the signature is wrong"
)]
pub trait Reconcile<M>: Send + Sync + 'static {
    /// The kind it reconciles.
    type Kind: Object;
    /// The state it reads.
    type State: Send + Sync + 'static;
    /// Whether it is called for objects that are being deleted too, where no finalizer is declared.
    const SEES_DELETION: bool;

    /// Brings one object to what its spec asks for.
    fn reconcile(
        &self,
        object: Arc<Self::Kind>,
        context: Context<Self::State>,
    ) -> BoxFuture<'static, Result<Action>>;
}

/// Marks functions that take a [`Context`].
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

/// Marks functions in kube's shape, which take their state and nothing else.
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

/// The future of a user's function, with its error as [`Error`].
pub(crate) fn converted<T: 'static, E: Into<Error> + 'static>(
    function: impl Future<Output = Result<T, E>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    Box::pin(function.map_err(Into::into))
}

/// What a worker calls for a request.
#[derive(Debug, Clone)]
pub(crate) enum Reconciler {
    /// With the object, as long as there is one.
    Object {
        function: Function<Action>,
        sees_deletion: bool,
    },
    /// With its key, also when it is gone.
    Key(KeyFunction),
}

impl Reconciler {
    /// Whether it is called for objects that are being deleted.
    pub(crate) fn sees_deletion(&self) -> bool {
        match self {
            Self::Object { sees_deletion, .. } => *sees_deletion,
            Self::Key(_) => true,
        }
    }
}

type ErasedKey = dyn Fn(Request, Stateless) -> BoxFuture<'static, Result<Action>> + Send + Sync;

/// A function on a key.
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

/// A declared finalizer: its name, and the function that cleans up.
#[derive(Debug)]
pub(crate) struct Finalizer {
    pub(crate) name: String,
    pub(crate) function: Function<Cleanup>,
}

/// A function on an object without its type.
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
                return Box::pin(async { Err(Error::msg("internal: an object of another type")) });
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
