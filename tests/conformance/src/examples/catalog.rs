//! The catalog operator: a web server beside the controller.

use std::net::SocketAddr;

use catalog_operator::{Product, ProductSpec, SELLS, Warehouse, operator, operator_with};
use k8s_openapi::api::core::v1::Service;
use opkit::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{golden_rules, object};

/// A catalog operator that runs, and the address of its server.
struct Shop {
    warehouse: Warehouse,
    address: SocketAddr,
}

async fn start(plane: &ControlPlane) -> opkit::Result<Shop> {
    let (warehouse, address) = (Warehouse::default(), watch::Sender::default());
    let mut listening = address.subscribe();
    let operator = operator_with(warehouse.clone(), address);
    plane
        .start_with(operator, ["--catalog-bind-address=127.0.0.1:0"])
        .await?;
    let address = *listening.wait_for(Option::is_some).await?;
    Ok(Shop {
        warehouse,
        address: address.expect("the server listens"),
    })
}

/// Sends a request, and returns the status and the body of the response.
async fn send(shop: &Shop, method: &str, path: &str) -> opkit::Result<(u16, String)> {
    let mut connection = TcpStream::connect(shop.address).await?;
    let request = format!("{method} {path} HTTP/1.1\r\nhost: catalog\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    let status = response.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = response
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    status
        .zip(body)
        .ok_or_else(|| Error::msg(format!("not a response: {response:?}")))
}

/// Returns what the server knows about a product of the test.
async fn product(shop: &Shop, name: &str) -> opkit::Result<Option<Value>> {
    let (status, body) = send(shop, "GET", "/products").await?;
    assert_eq!(status, 200, "{body}");
    let all: Vec<Value> = serde_json::from_str(&body)?;
    Ok(all.into_iter().find(|product| product["name"] == name))
}

/// Asks the server until what it knows about a product is `expected`.
async fn eventually(shop: &Shop, name: &str, expected: &Value) -> opkit::Result {
    let mut last = None;
    for _ in 0..6_000 {
        last = product(shop, name).await?;
        if last.as_ref() == Some(expected) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(Error::msg(format!(
        "expected {expected}, the last was {last:?}"
    )))
}

#[opkit::test]
async fn the_server_answers_from_the_cache_and_triggers_reconciles(
    plane: ControlPlane,
) -> opkit::Result {
    let shop = start(&plane).await?;
    plane
        .apply(Product::new("tea", ProductSpec { price: 350 }))
        .await?;
    let known = |stock: i64, services: &[&str]| {
        json!({
            "namespace": plane.namespace(), "name": "tea", "price": 350,
            "stock": stock, "services": services,
        })
    };
    eventually(&shop, "tea", &known(0, &[])).await?;

    // A kind that no controller declares.
    let service = json!({
        "metadata": {"name": "tea-shop", "labels": {SELLS: "tea"}},
        "spec": {"ports": [{"port": 80}]},
    });
    plane.apply::<Service>(object(service)).await?;
    eventually(&shop, "tea", &known(0, &["tea-shop"])).await?;

    // Nothing in the cluster changes, so only the server can trigger the reconcile. It answers 503
    // until this process is the leader.
    shop.warehouse.set_stock("tea", 5);
    let path = format!("/products/{}/tea/refresh", plane.namespace());
    let (mut status, mut body) = send(&shop, "POST", &path).await?;
    while status == 503 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        (status, body) = send(&shop, "POST", &path).await?;
    }
    assert_eq!((status, body.as_str()), (202, "accepted\n"));
    eventually(&shop, "tea", &known(5, &["tea-shop"])).await?;
    plane
        .eventually_event::<Product>("tea", "RefreshRequested")
        .await?;
    let records = plane.reconciles().records();
    let mut causes = records.iter().flat_map(|record| record.causes());
    assert!(causes.any(|cause| cause == "catalog server"));

    let none = format!("/products/{}/none/refresh", plane.namespace());
    assert_eq!(send(&shop, "POST", &none).await?.0, 404);
    assert_eq!(send(&shop, "GET", "/else").await?.0, 404);
    Ok(())
}

/// Each replica answers from its own cache, and only the leader accepts requests to reconcile.
#[opkit::test]
async fn a_replica_that_does_not_lead_answers_and_refuses(plane: ControlPlane) -> opkit::Result {
    let replicas = [start(&plane).await?, start(&plane).await?];
    let product = Product::new("tea", ProductSpec { price: 350 });
    plane.apply(product).await?;
    let known = json!({
        "namespace": plane.namespace(), "name": "tea", "price": 350,
        "stock": 0, "services": [],
    });
    for replica in &replicas {
        eventually(replica, "tea", &known).await?;
    }
    // The status was written by the leader, so one of them leads.
    let path = format!("/products/{}/tea/refresh", plane.namespace());
    let mut statuses = Vec::new();
    for replica in &replicas {
        statuses.push(send(replica, "POST", &path).await?.0);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 503]);
    Ok(())
}

#[test]
fn the_permissions_are_least_privilege() -> opkit::Result {
    golden_rules(&operator())
}
