//! The web server of the catalog.

use std::net::SocketAddr;

use opkit::cache::Lister;
use opkit::controller::Trigger;
use opkit::events::EventRecorder;
use opkit::k8s_openapi::api::core::v1::Service;
use opkit::kube::core::{Expression, Selector};
use opkit::leaderelection::Leadership;
use opkit::prelude::*;
use opkit::serde_json::{Value, json};
use opkit::servers::HttpServer;
use opkit::servers::http::request::Parts;
use opkit::servers::http::{Method, Response, StatusCode};
use tokio::sync::watch;

use crate::{App, Product, SELLS};

/// Serves the products from the cache, and triggers reconciles.
pub(crate) struct CatalogServer {
    pub(crate) trigger: Trigger,
    pub(crate) address: watch::Sender<Option<SocketAddr>>,
}

impl Runnable for CatalogServer {
    async fn run(&self, cx: RunContext) -> Result {
        let Some(app) = cx.state::<App>() else {
            return Err(Error::msg("the catalog server needs its address"));
        };
        let server = HttpServer::listen("catalog", app.catalog_bind_address).await?;
        self.address.send_replace(Some(server.address()));
        let catalog = Arc::new(Catalog {
            products: cx.lister()?,
            services: cx.lister()?,
            leadership: cx.leadership(),
            recorder: cx.recorder(),
            trigger: self.trigger.clone(),
        });
        let handler = move |request: Parts| {
            let catalog = catalog.clone();
            async move { catalog.respond(&request) }
        };
        server.serve(handler, cx.stop_token()).await;
        Ok(())
    }

    fn name(&self) -> String {
        "the catalog server".to_owned()
    }

    /// Every replica has a cache to answer from.
    fn needs_leader_election(&self) -> bool {
        false
    }
}

/// What the server reads and writes.
struct Catalog {
    products: Lister<Product>,
    services: Lister<Service>,
    leadership: watch::Receiver<Leadership>,
    recorder: EventRecorder,
    trigger: Trigger,
}

impl Catalog {
    fn respond(&self, request: &Parts) -> Response<String> {
        let path: Vec<_> = request.uri.path().split('/').skip(1).collect();
        match (&request.method, path.as_slice()) {
            (&Method::GET, ["products"]) => response(StatusCode::OK, self.list().to_string()),
            (&Method::POST, ["products", namespace, name, "refresh"]) => {
                self.refresh(&ObjectKey::from((*namespace, *name)))
            }
            _ => response(StatusCode::NOT_FOUND, "no such page\n"),
        }
    }

    /// Returns all products as JSON, sorted by key.
    fn list(&self) -> Value {
        let mut products = self.products.list(&Selection::default());
        products.sort_by_key(|product| (product.namespace(), product.name_any()));
        products
            .iter()
            .map(|product| self.describe(product))
            .collect()
    }

    fn describe(&self, product: &Product) -> Value {
        let sells = Expression::Equal(SELLS.to_owned(), product.name_any());
        let services = Selection::default()
            .namespace(product.namespace().unwrap_or_default())
            .labels(Selector::from(sells));
        let mut services: Vec<_> = self.services.keys(&services);
        services.sort_by(|a, b| a.name.cmp(&b.name));
        let services: Vec<_> = services.into_iter().map(|key| key.name).collect();
        json!({
            "namespace": product.namespace(),
            "name": product.name_any(),
            "price": product.spec.price,
            "stock": product.status.as_ref().and_then(|status| status.stock),
            "services": services,
        })
    }

    /// Triggers a reconcile of a product.
    fn refresh(&self, key: &ObjectKey) -> Response<String> {
        // Only the leader reconciles: in another process the request would wait for its term.
        if self.leadership.borrow().term().is_none() {
            return response(
                StatusCode::SERVICE_UNAVAILABLE,
                "not the leader: ask another replica\n",
            );
        }
        let Ok(Some(product)) = self.products.get(key) else {
            return response(StatusCode::NOT_FOUND, "no such product\n");
        };
        match self.trigger.try_send(key.clone()) {
            Ok(()) => {
                let note = "the catalog server was asked to refresh the stock";
                self.recorder
                    .event(&*product, Normal, "RefreshRequested", note);
                response(StatusCode::ACCEPTED, "accepted\n")
            }
            // Too many requests are waiting.
            Err(error) => response(StatusCode::TOO_MANY_REQUESTS, format!("{error}\n")),
        }
    }
}

fn response(status: StatusCode, body: impl Into<String>) -> Response<String> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}
