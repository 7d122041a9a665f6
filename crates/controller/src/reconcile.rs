//! What can be a reconciler, and its type-erased form.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use opkit_cache::{AnyObject, downcast};
use opkit_client::Object;

use crate::{Action, Context, Error, Result};

/// A reconciler: `async fn(Arc<K>, Context<S>) -> Result<Action>`.
///
/// `M` is a marker that tells function shapes apart, so that other shapes can be added; users never
/// name it.
pub trait Reconcile<M>: Send + Sync + 'static {
    /// The kind it reconciles.
    type Kind: Object;
    /// The state it reads through its context.
    type State: Send + Sync + 'static;

    /// Brings one object to what its spec asks for.
    fn reconcile(
        &self,
        object: Arc<Self::Kind>,
        context: Context<Self::State>,
    ) -> BoxFuture<'static, Result<Action>>;
}

/// Marks functions that take a [`Context`].
#[derive(Debug)]
pub struct WithContext<K, S>(PhantomData<fn(K, S)>);

impl<F, K, S, Fut> Reconcile<WithContext<K, S>> for F
where
    F: Fn(Arc<K>, Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action>> + Send + 'static,
    K: Object,
    S: Send + Sync + 'static,
{
    type Kind = K;
    type State = S;

    fn reconcile(&self, object: Arc<K>, context: Context<S>) -> BoxFuture<'static, Result<Action>> {
        Box::pin(self(object, context))
    }
}

type Erased<T> = dyn Fn(AnyObject, Context) -> BoxFuture<'static, Result<T>> + Send + Sync;

/// A function on an object without its type.
pub(crate) struct Function<T>(Arc<Erased<T>>);

impl<T> Clone for Function<T> {
    fn clone(&self) -> Self {
        Function(self.0.clone())
    }
}

impl<T> fmt::Debug for Function<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

impl<T: 'static> Function<T> {
    pub(crate) fn new<K: Object, S: Send + Sync + 'static>(
        function: impl Fn(Arc<K>, Context<S>) -> BoxFuture<'static, Result<T>> + Send + Sync + 'static,
    ) -> Self {
        Function(Arc::new(move |object, context| {
            match downcast::<K>(&object) {
                Some(object) => function(object, context.with_state()),
                None => Box::pin(async { Err(Error::msg("internal: an object of another type")) }),
            }
        }))
    }

    pub(crate) fn call(
        &self,
        object: AnyObject,
        context: Context,
    ) -> BoxFuture<'static, Result<T>> {
        (self.0)(object, context)
    }
}
