//! Serves the webhooks of an operator to the embedded control plane, within this process: no
//! sockets, no certificates.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use opkit_apimachinery::conversion::{self, KindVersions};
use opkit_apiserver::{LocalService, Server};
use opkit_operator::Operator;

/// Path at which an operator serves the conversion of its kinds.
const CONVERT: &str = "/convert";

/// Handler of the requests to an operator's webhooks: path and body of the request to status and
/// body of the response. Returns `None` for an unknown path.
pub(crate) type Handler =
    Arc<dyn Fn(&str, Bytes) -> Option<BoxFuture<'static, (u16, Bytes)>> + Send + Sync>;

/// Serves the operator's webhooks to a server, as the Service of the operator's manifests.
pub(crate) fn serve(server: &Server, operator: &Operator) {
    if operator.versions().is_empty() {
        return;
    }
    let (namespace, name) = operator.webhook_service();
    let service = Arc::new(Webhooks(conversions(operator.versions().to_vec())));
    server.serve_service(&namespace, &name, Some(service));
}

/// Returns a handler that converts objects between the versions of kinds.
fn conversions(kinds: Vec<KindVersions>) -> Handler {
    let kinds: Arc<[KindVersions]> = kinds.into();
    Arc::new(move |path, body| {
        let kinds = kinds.clone();
        (path == CONVERT).then(|| {
            async move {
                let review = conversion::review(&kinds, &body);
                (review.status, Bytes::from(review.body))
            }
            .boxed()
        })
    })
}

/// Webhooks of an operator as a Service of the embedded control plane.
struct Webhooks(Handler);

impl LocalService for Webhooks {
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> {
        let (parts, body) = request.into_parts();
        let handled = (self.0)(parts.uri.path(), body);
        async move {
            let (status, body) = match handled {
                Some(handled) => handled.await,
                None => (404, Bytes::from_static(b"404 page not found")),
            };
            let mut response = Response::new(body);
            *response.status_mut() =
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response
        }
        .boxed()
    }
}
