//! An operator with a web server beside its controller.
//!
//! It shows what a task beside the controllers can use: listers of the cache, a kind that is cached
//! for reading only ([`Operator::kinds`]), a trigger of reconciles, an event recorder, and the
//! leadership of the process.
//!
//! ```console
//! $ cargo run -- dev catalog-operator                  # in the repository
//! $ curl http://127.0.0.1:8090/products                # from the cache: no request to the API server
//! [{"name":"tea","namespace":"default","price":350,"services":[],"stock":0}]
//! $ curl -X POST http://127.0.0.1:8090/products/default/tea/refresh
//! ```
//!
//! The server has no TLS and knows no users, so it listens on loopback only. For other clients, put
//! a proxy in front of it.

mod product;
mod server;
mod warehouse;

use std::net::SocketAddr;

use opkit::clap;
use opkit::controller::trigger;
use opkit::k8s_openapi::api::core::v1::Service;
use opkit::prelude::*;
use tokio::sync::watch;

pub use product::{Product, ProductSpec, ProductStatus};
use server::CatalogServer;
pub use warehouse::Warehouse;

/// Label of a Service that sells a product, with the name of the product.
pub const SELLS: &str = "catalog.opkit.dev/sells";

/// The operator's own flags.
#[derive(clap::Args)]
struct Flags {
    /// Address of the catalog server; port 0 chooses a free port
    #[arg(long, default_value = "127.0.0.1:8090")]
    catalog_bind_address: SocketAddr,
}

/// State that the reconciles and the server share.
struct App {
    warehouse: Warehouse,
    catalog_bind_address: SocketAddr,
}

/// Returns the operator, with an empty warehouse.
pub fn operator() -> Operator {
    operator_with(Warehouse::default(), watch::Sender::default())
}

/// Returns the operator with another warehouse; tests call this. `address` receives the address of
/// the server.
pub fn operator_with(warehouse: Warehouse, address: watch::Sender<Option<SocketAddr>>) -> Operator {
    let (trigger, requests) = trigger("catalog server");
    let app = move |flags: Flags| async move {
        Ok::<_, Error>(App {
            warehouse,
            catalog_bind_address: flags.catalog_bind_address,
        })
    };
    Operator::new("catalog-operator")
        .crd::<Product>()
        // Cached for the server only. The products are cached for the controller.
        .kinds::<(Service,)>()
        .args::<Flags>()
        .state(app.clone())
        // The state writes nowhere else, so a plan can use the same one.
        .state_for_plan(app)
        .controller(Controller::new(reconcile).triggered_by(requests))
        .runnable(CatalogServer { trigger, address })
        .leader_election("catalog-operator.opkit.dev")
}

/// Writes the stock of one product to its status. The warehouse reports no changes, so a change is
/// found when the server triggers a reconcile.
async fn reconcile(product: Arc<Product>, cx: Context<App>) -> Result<Action> {
    let stock = cx.state().warehouse.stock(&product.name_any());
    cx.update_status(&product, |status| {
        status.stock = Some(stock);
        let ready = Condition::new("Ready", true).reason("StockKnown");
        status.conditions.set(ready);
    })
    .await?;
    Ok(Action::await_change())
}
