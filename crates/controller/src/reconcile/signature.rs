//! Traits by which `#[opkit::reconcile]` checks the types of a function's signature. Each exists
//! for its compiler message.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use opkit_client::Object;

use crate::context::Context;
use crate::error::Error;
use crate::object::Request;
use crate::reconcile::{Action, Cleanup};

/// The first argument of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function gets its object in an `Arc`, not as `{Self}`",
    label = "write `Arc<{Self}>`",
    note = "the object is shared with the cache: to change it, clone what is in the `Arc`"
)]
pub trait ReconcileObject {}

impl<K: Object> ReconcileObject for Arc<K> {}
impl ReconcileObject for Request {}

/// The second argument of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function works with a `Context`, and `{Self}` is not one",
    label = "write `Context`, `Context<App>` for one with a state, or `Arc<App>` in kube's shape"
)]
pub trait ReconcileContext {}

impl<S: Send + Sync + 'static> ReconcileContext for Context<S> {}
impl<S: Send + Sync + 'static> ReconcileContext for Arc<S> {}

/// The output of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function returns `Result<Action>`, not `{Self}`",
    label = "write `Result<Action>`"
)]
pub trait ReconcileResult {
    /// The value of `Ok`.
    type Value;
    /// The value of `Err`.
    type Error;
}

impl<T, E> ReconcileResult for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// The value of `Ok` that a reconcile function returns.
#[diagnostic::on_unimplemented(
    message = "a reconcile function returns `Result<Action>`, not `Result<{Self}>`",
    label = "write `Result<Action>` and end with `Ok(Action::await_change())`; the function of a finalizer returns `Result<Cleanup>`"
)]
pub trait ReconcileValue {}

impl ReconcileValue for Action {}
impl ReconcileValue for Cleanup {}

/// Checks the first argument.
pub fn object<T: ReconcileObject>() {}

/// Checks the second argument.
pub fn context<T: ReconcileContext>() {}

/// Checks the type of `Ok`.
pub fn value<T: ReconcileResult>()
where
    T::Value: ReconcileValue,
{
}

/// Checks that a worker may go on with the function on another thread.
pub fn is_send<F: Future + Send>(_: F) {}

/// Finds out whether the error of a result can become an [`Error`]. A method of the type goes
/// before one of a trait, and that before one that needs another reference: so `(&probe).verdict()`
/// is that of [`Probe`] where it can be, then that of [`NotConvertible`], and of [`NoResult`] for
/// what is no result.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn(T)>);

/// The verdict on an error that can become an [`Error`].
#[derive(Debug)]
pub struct Convertible<E>(PhantomData<fn(E)>);

/// The verdict on an error that cannot.
#[derive(Debug)]
pub struct Inconvertible<E>(PhantomData<fn(E)>);

impl<T> Probe<T> {
    /// Returns a probe of `T`.
    #[allow(clippy::new_without_default, reason = "named by generated code only")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T, E: Into<Error>> Probe<Result<T, E>> {
    /// Returns that the error can be converted.
    pub fn verdict(&self) -> Convertible<E> {
        Convertible(PhantomData)
    }
}

/// The verdict on every other error.
pub trait NotConvertible {
    /// The error.
    type Error;

    /// Returns that the error cannot be converted.
    fn verdict(&self) -> Inconvertible<Self::Error>;
}

impl<T, E> NotConvertible for Probe<Result<T, E>> {
    type Error = E;

    fn verdict(&self) -> Inconvertible<E> {
        Inconvertible(PhantomData)
    }
}

/// The verdict on what is not a result, which [`value`] reports.
pub trait NoResult {
    /// Returns that there is no error to convert.
    fn verdict(&self) -> Convertible<()> {
        Convertible(PhantomData)
    }
}

impl<T> NoResult for &Probe<T> {}

/// The output of a probe.
pub trait Verdict {
    /// The error.
    type Error;
}

impl<E> Verdict for Convertible<E> {
    type Error = E;
}

impl<E> Verdict for Inconvertible<E> {
    type Error = E;
}

/// The verdict that is accepted.
#[diagnostic::on_unimplemented(
    message = "the error `{E}` of a reconcile function cannot become an `opkit::Error`",
    label = "not `Into<opkit::Error>`",
    note = "implement `std::error::Error` for it (`#[derive(thiserror::Error)]` does); it must be `Send`, `Sync` and `'static`",
    note = "or return `Result<Action>`, and write `.map_err(Error::msg)?` for what only prints, `.map_err(Error::from_boxed)?` for a `Box<dyn Error + Send + Sync>`, `.map_err(|error| Error::from_boxed(error.into()))?` for an `anyhow::Error`"
)]
pub trait IsConvertible<E> {}

impl<E> IsConvertible<E> for Convertible<E> {}

/// Checks the type of `Err`.
pub fn error<V: Verdict + IsConvertible<<V as Verdict>::Error>>(_: V) {}
