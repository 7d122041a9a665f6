//! Functions that create the state of an operator.

use std::future::Future;
use std::sync::Arc;

use clap::Args;
use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_controller::{Error, Manager, Result, StateContext};

use crate::arguments::{ArgsType, ParsedArgs};

/// Function that changes the manager before the manager runs.
pub(super) type Setup = Box<dyn FnOnce(Manager) -> Manager + Send>;

/// State that is created when the operator starts.
pub(super) struct Declared {
    pub(super) state: &'static str,
    /// Type of the flags that the function takes which creates the state.
    pub(super) args: Option<ArgsType>,
    /// Function that creates the state, or registers the user's function that creates a state for
    /// each term.
    pub(super) make: Box<dyn FnOnce(ParsedArgs) -> BoxFuture<'static, Result<Setup>> + Send>,
}

impl Declared {
    pub(super) fn once<M, F: MakeState<M>>(make: F) -> Self {
        Self {
            state: std::any::type_name::<F::State>(),
            args: F::args(),
            make: Box::new(move |args| {
                let created = make.make(&args);
                async move {
                    let state = Arc::new(created.await?);
                    let give: Setup = Box::new(move |manager| manager.state(state));
                    Ok(give)
                }
                .boxed()
            }),
        }
    }

    pub(super) fn per_term<M, F: MakeStateWith<M>>(make: F) -> Self {
        Self {
            state: std::any::type_name::<F::State>(),
            args: F::args(),
            make: Box::new(move |args| {
                let give: Setup = Box::new(move |manager| {
                    manager.state_with(move |context| make.make(context, &args))
                });
                std::future::ready(Ok(give)).boxed()
            }),
        }
    }
}

/// Function that creates a state once: `async fn() -> Result<S, E>`, or with the operator's own
/// flags `async fn(MyArgs) -> Result<S, E>`; see [`Operator::state`](crate::Operator::state).
///
/// `M` is a marker that distinguishes the signatures of functions; users never name `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot create a state",
    label = "not a function that creates a state",
    note = "write `async fn() -> Result<S>`, or `async fn(MyArgs) -> Result<S>` where `MyArgs` derives `clap::Args`",
    note = "for an existing value use `.state_value(value)`; with a client, the caches or an event recorder `.state_with(make)`"
)]
pub trait MakeState<M>: Send + 'static {
    /// Type of the state.
    type State: Send + Sync + 'static;

    /// Returns the type of the flags that the function takes.
    #[doc(hidden)]
    fn args() -> Option<ArgsType>;

    /// Creates the state.
    #[doc(hidden)]
    fn make(self, args: &ParsedArgs) -> BoxFuture<'static, Result<Self::State>>;
}

impl<F, Fut, S, E> MakeState<fn()> for F
where
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<S, E>> + Send + 'static,
    S: Send + Sync + 'static,
    E: Into<Error> + 'static,
{
    type State = S;

    fn args() -> Option<ArgsType> {
        None
    }

    fn make(self, _: &ParsedArgs) -> BoxFuture<'static, Result<S>> {
        let created = self();
        async move { created.await.map_err(Into::into) }.boxed()
    }
}

impl<F, Fut, A, S, E> MakeState<fn(A)> for F
where
    F: FnOnce(A) -> Fut + Send + 'static,
    Fut: Future<Output = Result<S, E>> + Send + 'static,
    A: Args + 'static,
    S: Send + Sync + 'static,
    E: Into<Error> + 'static,
{
    type State = S;

    fn args() -> Option<ArgsType> {
        Some(ArgsType::of::<A>())
    }

    fn make(self, args: &ParsedArgs) -> BoxFuture<'static, Result<S>> {
        let created = args.get::<A>().map(self);
        async move { created?.await.map_err(Into::into) }.boxed()
    }
}

/// Function that creates a state for each term of leadership:
/// `async fn(StateContext) -> Result<S, E>`, or with the operator's own flags
/// `async fn(StateContext, MyArgs) -> Result<S, E>`; see
/// [`Operator::state_with`](crate::Operator::state_with).
///
/// `M` is a marker that distinguishes the signatures of functions; users never name `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot create a state",
    label = "not a function that creates a state",
    note = "write `async fn(StateContext) -> Result<S>`, or `async fn(StateContext, MyArgs) -> Result<S>` where `MyArgs` derives `clap::Args`",
    note = "it is called for each term of leadership: clone inside of a closure what it moves"
)]
pub trait MakeStateWith<M>: Send + Sync + 'static {
    /// Type of the state.
    type State: Send + Sync + 'static;

    /// Returns the type of the flags that the function takes.
    #[doc(hidden)]
    fn args() -> Option<ArgsType>;

    /// Creates the state.
    #[doc(hidden)]
    fn make(
        &self,
        context: StateContext,
        args: &ParsedArgs,
    ) -> BoxFuture<'static, Result<Self::State>>;
}

impl<F, Fut, S, E> MakeStateWith<fn(StateContext)> for F
where
    F: Fn(StateContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<S, E>> + Send + 'static,
    S: Send + Sync + 'static,
    E: Into<Error> + 'static,
{
    type State = S;

    fn args() -> Option<ArgsType> {
        None
    }

    fn make(&self, context: StateContext, _: &ParsedArgs) -> BoxFuture<'static, Result<S>> {
        let created = self(context);
        async move { created.await.map_err(Into::into) }.boxed()
    }
}

impl<F, Fut, A, S, E> MakeStateWith<fn(StateContext, A)> for F
where
    F: Fn(StateContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<S, E>> + Send + 'static,
    A: Args + 'static,
    S: Send + Sync + 'static,
    E: Into<Error> + 'static,
{
    type State = S;

    fn args() -> Option<ArgsType> {
        Some(ArgsType::of::<A>())
    }

    fn make(&self, context: StateContext, args: &ParsedArgs) -> BoxFuture<'static, Result<S>> {
        let created = args.get::<A>().map(|args| self(context, args));
        async move { created?.await.map_err(Into::into) }.boxed()
    }
}
