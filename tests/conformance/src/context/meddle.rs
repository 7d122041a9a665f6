//! Interference of another client right before a chosen request of the operator is sent.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use http::{Request, header};
use kube::client::Body;
use opkit::client::RequestInfo;
use parking_lot::Mutex;

/// Content type of a server-side apply.
pub(super) const APPLY: &str = "application/apply-patch+yaml";
/// Content type of a merge patch.
pub(super) const MERGE: &str = "application/merge-patch+json";

/// Planned interference, if there is one.
#[derive(Clone, Default)]
pub(super) struct Meddle {
    next: Arc<Mutex<Option<Act>>>,
}

struct Act {
    content_type: &'static str,
    resource: &'static str,
    act: BoxFuture<'static, opkit::Result>,
}

impl Meddle {
    /// Plans that `act` runs once, before the next patch of this type to an object of `resource` is
    /// sent.
    pub(super) fn before_patch(
        &self,
        content_type: &'static str,
        resource: &'static str,
        act: impl Future<Output = opkit::Result> + Send + 'static,
    ) {
        let act = act.boxed();
        *self.next.lock() = Some(Act {
            content_type,
            resource,
            act,
        });
    }

    /// Reports whether the planned interference has run.
    pub(super) fn is_done(&self) -> bool {
        self.next.lock().is_none()
    }

    /// Returns a client whose requests can trigger the interference.
    pub(super) fn around(&self, client: kube::Client) -> kube::Client {
        let (meddle, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (meddle, client) = (meddle.clone(), client.clone());
            async move {
                if let Some(act) = meddle.take(&request) {
                    act.await.unwrap();
                }
                client.send(request).await
            }
        });
        kube::Client::new(service, namespace)
    }

    fn take(&self, request: &Request<Body>) -> Option<BoxFuture<'static, opkit::Result>> {
        let content_type = request.headers().get(header::CONTENT_TYPE)?;
        let mut next = self.next.lock();
        let is_meant = next.as_ref().is_some_and(|act| {
            content_type == act.content_type && RequestInfo::of(request).plural == act.resource
        });
        next.take_if(|_| is_meant).map(|act| act.act)
    }
}
