//! Traits with which `#[opkit::reconcile]` checks the types in a function's signature. Each trait
//! exists only for the compiler's message when a type does not implement it.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use opkit_client::Object;

use crate::context::Context;
use crate::error::Error;
use crate::object::Request;
use crate::reconcile::{Action, Cleanup};

/// Types that may be the first argument of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function takes its object as an `Arc`, not as `{Self}`",
    label = "write `Arc<{Self}>`",
    note = "the object is shared with the cache: to change it, clone the value in the `Arc`"
)]
pub trait ReconcileObject {}

impl<K: Object> ReconcileObject for Arc<K> {}
impl ReconcileObject for Request {}

/// Types that may be the second argument of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function takes a `Context`, not `{Self}`",
    label = "write `Context`, `Context<App>` for one with a state, or `Arc<App>` in kube's shape"
)]
pub trait ReconcileContext {}

impl<S: Send + Sync + 'static> ReconcileContext for Context<S> {}
impl<S: Send + Sync + 'static> ReconcileContext for Arc<S> {}

/// Types that may be the output of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function returns `Result<Action>`, not `{Self}`",
    label = "write `Result<Action>`"
)]
pub trait ReconcileResult {
    /// Type of the `Ok` value.
    type Value;
    /// Type of the `Err` value.
    type Error;
}

impl<T, E> ReconcileResult for Result<T, E> {
    type Value = T;
    type Error = E;
}

/// Types that may be the `Ok` value of a reconcile function.
#[diagnostic::on_unimplemented(
    message = "a reconcile function returns `Result<Action>`, not `Result<{Self}>`",
    label = "write `Result<Action>` and end with `Ok(Action::await_change())`; the function of a finalizer returns `Result<Cleanup>`"
)]
pub trait ReconcileValue {}

impl ReconcileValue for Action {}
impl ReconcileValue for Cleanup {}

/// Checks that `T` may be the first argument of a reconcile function.
pub fn object<T: ReconcileObject>() {}

/// Checks that `T` may be the second argument of a reconcile function.
pub fn context<T: ReconcileContext>() {}

/// Checks that `T` may be the output of a reconcile function, including its `Ok` value.
pub fn value<T: ReconcileResult>()
where
    T::Value: ReconcileValue,
{
}

/// Checks that the future of a reconcile function can move between threads.
pub fn is_send<F: Future + Send>(_: F) {}

/// Finds out at compile time whether the error of a result type `T` can be converted to [`Error`].
/// The compiler prefers an inherent method to a trait method, and both to a method that needs one
/// more reference. So `(&probe).verdict()` calls the method of [`Probe`] if the error can be
/// converted, else the method of [`NotConvertible`]. For a type that is not a result, it calls the
/// method of [`NoResult`].
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn(T)>);

/// Return type of `verdict` for an error that can be converted to [`Error`].
#[derive(Debug)]
pub struct Convertible<E>(PhantomData<fn(E)>);

/// Marker that the error type `E` cannot be converted to [`Error`]. `verdict` returns it, so that
/// the compiler reports this mistake by name.
#[derive(Debug)]
pub struct Inconvertible<E>(PhantomData<fn(E)>);

impl<T> Probe<T> {
    /// Creates a probe of the type `T`.
    #[allow(clippy::new_without_default, reason = "named by generated code only")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T, E: Into<Error>> Probe<Result<T, E>> {
    /// Returns the marker of an error type that can be converted to [`Error`].
    pub fn verdict(&self) -> Convertible<E> {
        Convertible(PhantomData)
    }
}

/// Trait whose method the compiler selects for results with an error that cannot be converted to
/// [`Error`].
pub trait NotConvertible {
    /// Type of the result's error.
    type Error;

    /// Returns the marker of an error type that cannot be converted to [`Error`].
    fn verdict(&self) -> Inconvertible<Self::Error>;
}

impl<T, E> NotConvertible for Probe<Result<T, E>> {
    type Error = E;

    fn verdict(&self) -> Inconvertible<E> {
        Inconvertible(PhantomData)
    }
}

/// Trait whose method the compiler selects for types that are not a result. The function [`value`]
/// reports such types.
pub trait NoResult {
    /// Returns the same marker as for a convertible error, because there is no error to convert.
    fn verdict(&self) -> Convertible<()> {
        Convertible(PhantomData)
    }
}

impl<T> NoResult for &Probe<T> {}

/// The return types of the methods `verdict`: [`Convertible`] and [`Inconvertible`].
pub trait Verdict {
    /// Type of the error that was tested.
    type Error;
}

impl<E> Verdict for Convertible<E> {
    type Error = E;
}

impl<E> Verdict for Inconvertible<E> {
    type Error = E;
}

/// Implemented only for [`Convertible`], so that the compiler reports an error type that cannot be
/// converted to [`Error`].
#[diagnostic::on_unimplemented(
    message = "the error `{E}` of a reconcile function cannot be converted to `opkit::Error` with `?`",
    label = "not `Into<opkit::Error>`",
    note = "implement `std::error::Error` for it (`#[derive(thiserror::Error)]` does); it must be `Send`, `Sync` and `'static`",
    note = "or return `Result<Action>`, and write `.map_err(Error::msg)?` for a type that implements only `Display`, `.map_err(Error::from_boxed)?` for a `Box<dyn Error + Send + Sync>`, `.map_err(|error| Error::from_boxed(error.into()))?` for an `anyhow::Error`"
)]
pub trait IsConvertible<E> {}

impl<E> IsConvertible<E> for Convertible<E> {}

/// Checks that the `Err` value of a reconcile function can be converted to [`Error`]. The argument
/// is the result of `(&probe).verdict()`.
pub fn error<V: Verdict + IsConvertible<<V as Verdict>::Error>>(_: V) {}
