//! The embedded control plane, in process: time to the first response, and speed of writes and
//! lists.
//!
//! A real kube-apiserver is the peer; it is measured here once the tests can start one.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use opkit_apiserver::{Options, Server};
use opkit_benches::Measurements;
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt;

const RUNS: usize = 11;
const OBJECTS: usize = 2_000;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(server: &Server, method: &str, path: &str, body: String) -> Bytes {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let Ok(response) = server.service().oneshot(request).await;
    assert!(
        response.status().is_success(),
        "{method} {path}: {}",
        response.status()
    );
    let Ok(body) = response.into_body().collect().await;
    body.to_bytes()
}

fn print(what: &str, measurements: &Measurements, each: usize) {
    let (least, most) = measurements.spread();
    let each = u32::try_from(each).unwrap_or(1);
    println!(
        "{what:<40} median {:>10.1?}   {:.1?} .. {:.1?}",
        measurements.median() / each,
        least / each,
        most / each
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (mut start, mut create, mut list) = (
        Measurements::default(),
        Measurements::default(),
        Measurements::default(),
    );
    for _ in 0..RUNS {
        let began = Instant::now();
        let server = Server::start(Options::default()).expect("a control plane");
        send(&server, "GET", "/readyz", String::new()).await;
        start.push(began.elapsed());

        let began = Instant::now();
        for number in 0..OBJECTS {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("map-{number}"), "labels": {"app": "bench"}},
                "data": {"text": "a value of some length, as settings have it"},
            });
            send(&server, "POST", PATH, object.to_string()).await;
        }
        create.push(began.elapsed());

        let began = Instant::now();
        send(&server, "GET", PATH, String::new()).await;
        list.push(began.elapsed());
        server.shutdown().await;
    }
    print("start to first response", &start, 1);
    print("create a config map", &create, OBJECTS);
    print(&format!("list {OBJECTS} config maps"), &list, 1);
}
