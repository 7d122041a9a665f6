//! The common trait of the layers of the HTTP stack, and an adapter that makes an implementation a
//! tower layer.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Request;
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::HttpResponse;

/// The result of a request.
pub(crate) type Outcome = Result<HttpResponse, BoxError>;

/// The part of the HTTP stack to which a middleware passes requests.
pub(crate) trait Next:
    Service<Request<Body>, Response = HttpResponse, Error = BoxError, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> Next for S where
    S: Service<Request<Body>, Response = HttpResponse, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// Code that runs around each request.
pub(crate) trait Middleware: Clone {
    /// Handles `request`. May send the request through `next` any number of times.
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome>;
}

/// The tower layer of a middleware.
#[derive(Clone)]
pub(super) struct MiddlewareLayer<T>(pub(super) T);

impl<S, T: Middleware> Layer<S> for MiddlewareLayer<T> {
    type Service = MiddlewareService<S, T>;

    fn layer(&self, next: S) -> Self::Service {
        let middleware = self.0.clone();
        MiddlewareService { next, middleware }
    }
}

/// The tower service of a middleware, which [`MiddlewareLayer`] creates.
#[derive(Clone)]
pub(super) struct MiddlewareService<S, T> {
    next: S,
    middleware: T,
}

impl<S: Next, T: Middleware> Service<Request<Body>> for MiddlewareService<S, T> {
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Outcome>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.middleware.handle(self.next.clone(), request)
    }
}
