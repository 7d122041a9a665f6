//! One shape for the layers of the stack: a step that each request passes on its way to the next.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Request;
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::Answer;

/// How a request ends.
pub(crate) type Outcome = Result<Answer, BoxError>;

/// The rest of the stack below a step.
pub(crate) trait Next:
    Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send> + Clone + Send + 'static
{
}

impl<S> Next for S where
    S: Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// What is done around a request.
pub(crate) trait Step: Clone {
    /// Sends `request` through `next`, once, several times or not at all.
    fn pass(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome>;
}

/// The layer of a step.
#[derive(Clone)]
pub(super) struct StepLayer<T>(pub(super) T);

impl<S, T: Step> Layer<S> for StepLayer<T> {
    type Service = Stepped<S, T>;

    fn layer(&self, next: S) -> Self::Service {
        let step = self.0.clone();
        Stepped { next, step }
    }
}

/// See [`StepLayer`].
#[derive(Clone)]
pub(super) struct Stepped<S, T> {
    next: S,
    step: T,
}

impl<S: Next, T: Step> Service<Request<Body>> for Stepped<S, T> {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Outcome>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.step.pass(self.next.clone(), request)
    }
}
