use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use http::{Method, Response};
use kube::core::Status;
use serde_json::{Value, json};

use super::*;

mod plan;

/// A server that stores objects by path and counts requests.
#[derive(Clone, Default)]
struct Objects {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    writes: Arc<AtomicU64>,
}

impl Objects {
    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let response = server.response(&request);
            async move { Ok::<_, Infallible>(response) }
        });
        kube::Client::new(service, "default")
    }

    fn with(self, path: &str, object: Value) -> Self {
        self.objects.lock().insert(path.to_owned(), object);
        self
    }

    fn response(&self, request: &Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let objects = self.objects.lock();
        let query = request.uri().query().unwrap_or_default();
        let (code, body) = if query.contains("dryRun=All") {
            let message = "admission webhook \"w\" does not support dry run";
            (
                400,
                json!({"kind": "Status", "code": 400, "message": message}),
            )
        } else if request.method() != Method::GET {
            self.writes.fetch_add(1, Ordering::Relaxed);
            (200, json!({}))
        } else if path.ends_with("/configmaps") {
            let inside = objects.iter().filter(|(key, _)| key.starts_with(path));
            let items: Vec<&Value> = inside.map(|(_, object)| object).collect();
            (
                200,
                json!({"kind": "ConfigMapList", "metadata": {}, "items": items}),
            )
        } else {
            match objects.get(path) {
                Some(object) => (200, object.clone()),
                None => (
                    404,
                    json!({"kind": "Status", "code": 404, "reason": "NotFound"}),
                ),
            }
        };
        let body = Body::from(serde_json::to_vec(&body).unwrap());
        Response::builder().status(code).body(body).unwrap()
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "default", "resourceVersion": "7", "uid": "u", "generation": 3,
    }, "data": {"a": "1", "b": "2"}})
}

/// Sends a request with a JSON body. Returns the code and the body of the response.
async fn send(client: &kube::Client, method: &str, uri: &str, body: Value) -> (u16, Value) {
    send_as(client, method, uri, "application/json", body).await
}

async fn send_as(
    client: &kube::Client,
    method: &str,
    uri: &str,
    content_type: &str,
    body: Value,
) -> (u16, Value) {
    let body = match body {
        Value::Null => Vec::new(),
        body => serde_json::to_vec(&body).unwrap(),
    };
    let request = Request::builder().method(method).uri(uri);
    let request = request.header("content-type", content_type);
    let response = client.send(request.body(Body::from(body)).unwrap()).await;
    let response = response.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

async fn get(client: &kube::Client, uri: &str) -> (u16, Value) {
    send(client, "GET", uri, Value::Null).await
}

#[tokio::test(start_paused = true)]
async fn exchanges_are_numbered_bounded_and_hold_no_secrets() {
    let secret = json!({"kind": "Secret", "data": {"password": "hush"}});
    let server = Objects::default().with("/api/v1/namespaces/default/secrets/a", secret);
    let seam = Seam::with_limits(2, 1000);
    let client = seam.wrap(server.client());
    for _ in 0..3 {
        get(&client, &format!("{MAPS}/none?x=1")).await;
    }
    get(&client, "/api/v1/namespaces/default/secrets/a").await;
    let exchanges = seam.exchanges();
    let lines: Vec<String> = exchanges.iter().map(Exchange::to_string).collect();
    assert_eq!(
        lines,
        [
            "#3 get configmaps default/none -> 404",
            "#4 get secrets default/a -> 200"
        ]
    );
    assert_eq!(exchanges[0].query, "x=1");
    assert!(!format!("{exchanges:?}").contains("hush"));
    assert!(format!("{exchanges:?}").contains("REDACTED"));
    assert_eq!(seam.requests(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_rule_delays_fails_refuses_and_drops() {
    let server = Objects::default().with(&format!("{MAPS}/a"), map("a"));
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.add(Rule::new(Effect::Delay(Duration::from_secs(5))).verb("get"));
    let start = Instant::now();
    assert_eq!(get(&client, &format!("{MAPS}/a")).await.0, 200);
    assert_eq!(start.elapsed().as_secs(), 5);
    seam.clear_rules();

    let status = Status::failure("it changed", "Conflict").with_code(409);
    seam.add(
        Rule::new(Effect::Fail(Box::new(status)))
            .verb("update")
            .nth(2),
    );
    let put = async || send(&client, "PUT", &format!("{MAPS}/a"), map("a")).await.0;
    assert_eq!((put().await, put().await, put().await), (200, 409, 200));
    assert_eq!(server.writes.load(Ordering::Relaxed), 2);
    seam.clear_rules();

    let raw = async |effect| {
        seam.clear_rules();
        seam.add(Rule::new(effect));
        let request = Request::delete(format!("{MAPS}/a")).body(Body::empty());
        client.send(request.unwrap()).await.map(drop)
    };
    assert!(raw(Effect::Refuse).await.is_err());
    assert_eq!(server.writes.load(Ordering::Relaxed), 2, "not sent");
    assert!(raw(Effect::DropResponse).await.is_err());
    assert_eq!(server.writes.load(Ordering::Relaxed), 3, "sent");
    let last = seam.exchanges().pop().unwrap().to_string();
    assert!(
        last.ends_with("response dropped by a rule of the effect seam"),
        "{last}"
    );
}

#[tokio::test]
async fn a_response_can_break_off() {
    let server = Objects::default().with(&format!("{MAPS}/a"), map("a"));
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.add(Rule::new(Effect::CutResponse(10)));
    let request = Request::get(format!("{MAPS}/a")).body(Body::empty());
    let mut body = client.send(request.unwrap()).await.unwrap().into_body();
    let frame = http_body_util::BodyExt::frame(&mut body)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(frame.into_data().unwrap().len(), 10);
    assert!(
        http_body_util::BodyExt::frame(&mut body)
            .await
            .unwrap()
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_is_retried_for_reads_but_not_for_writes() {
    let server = Objects::default().with(&format!("{MAPS}/a"), map("a"));
    let seam = Seam::new();
    let options = crate::ClientOptions {
        seam: Some(seam.layer()),
        ..Default::default()
    };
    let raw = server.client();
    let service = tower::service_fn(move |request| {
        let raw = raw.clone();
        async move { raw.send(request).await }
    });
    let client = options.in_process(service, "default");
    seam.add(Rule::new(Effect::DropResponse).times(2));
    assert_eq!(get(&client, &format!("{MAPS}/a")).await.0, 200);
    assert_eq!(seam.requests(), 3);
    seam.clear_rules();
    seam.add(Rule::new(Effect::DropResponse).times(1));
    let request = Request::delete(format!("{MAPS}/a")).body(Body::empty());
    assert!(client.send(request.unwrap()).await.is_err());
    assert_eq!(seam.requests(), 4);
}
