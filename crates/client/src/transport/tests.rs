use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;

mod fence;
mod goaway;
mod identity;
mod proxy;
mod tls;
#[cfg(feature = "ws")]
mod websocket;

type Script = fn(usize, &Request<Body>) -> Response<Body>;

/// Creates a client of a service that responds with `script`, given the number of the request. The
/// first request has the number 1.
fn scripted(options: ClientOptions, script: Script) -> (kube::Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        let response = script(number, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    (options.in_process(service, "default"), count)
}

fn response(
    code: u16,
    header: Option<(&'static str, &'static str)>,
    body: &[u8],
) -> Response<Body> {
    let mut builder = Response::builder().status(code);
    if let Some((name, value)) = header {
        builder = builder.header(name, value);
    }
    builder.body(Body::from(body.to_vec())).unwrap()
}

fn request(method: &str, uri: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(uri)
        .body(Body::from(b"body".to_vec()))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_retried_after_the_requested_time() {
    let options = ClientOptions::default();
    let metrics = options.metrics.clone();
    let (client, count) = scripted(options, |number, _| match number {
        1 | 2 => response(429, Some(("retry-after", "3")), b""),
        _ => response(201, None, b"{}"),
    });
    let start = Instant::now();
    let response = client.send(request("POST", "/api/v1/pods")).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(count.load(Ordering::Relaxed), 3);
    assert_eq!(start.elapsed().as_secs(), 6);
    drop(response);
    let text = metrics.encode();
    for line in [
        r#"rest_client_requests_total{code="429",method="POST",host=""} 2"#,
        r#"rest_client_requests_total{code="201",method="POST",host=""} 1"#,
        r#"rest_client_request_retries_total{code="429",verb="POST",host=""} 2"#,
        r#"rest_client_request_duration_seconds_count{verb="POST",host=""} 1"#,
        r#"rest_client_request_size_bytes_sum{verb="POST",host=""} 4.0"#,
        r#"rest_client_response_size_bytes_count{verb="POST",host=""} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_busy_gets_eleven_requests() {
    let (client, count) = scripted(ClientOptions::default(), |_, _| {
        response(503, Some(("retry-after", "1")), b"")
    });
    let response = client.send(request("GET", "/api/v1/pods")).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(count.load(Ordering::Relaxed), 11);
}

/// The API server also sends `Retry-After` when etcd times out.
#[tokio::test(start_paused = true)]
async fn a_write_that_may_have_taken_effect_is_sent_once() {
    let cases = [
        ("POST", "application/json", 1),
        ("PATCH", "application/json-patch+json", 1),
        ("PATCH", "application/merge-patch+json", 2),
        ("PUT", "application/json", 2),
    ];
    for (method, content_type, expected) in cases {
        let (client, count) = scripted(ClientOptions::default(), |number, _| match number {
            1 => response(504, Some(("retry-after", "1")), b""),
            _ => response(200, None, b"{}"),
        });
        let mut request = request(method, "/api/v1/namespaces/a/pods/b");
        let content_type = http::HeaderValue::from_static(content_type);
        request.headers_mut().insert("content-type", content_type);
        client.send(request).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), expected, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_limit_makes_requests_wait() {
    let options = ClientOptions {
        rate_limit: Some(RateLimit {
            qps: 10.0,
            burst: 2,
        }),
        ..Default::default()
    };
    let (client, _) = scripted(options, |_, _| response(200, None, b""));
    let start = Instant::now();
    for _ in 0..5 {
        client.send(request("GET", "/version")).await.unwrap();
    }
    let elapsed = start.elapsed().as_millis();
    assert!((300..310).contains(&elapsed), "{elapsed}");
}

#[tokio::test]
async fn a_warning_is_reported_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let options = ClientOptions {
        warnings: Warnings::handled(move |warning| log.lock().push(warning.text.clone())),
        ..Default::default()
    };
    let (client, _) = scripted(options, |number, _| {
        let warning = match number {
            3 => r#"299 - "another""#,
            _ => r#"299 - "v1 ComponentStatus is deprecated in v1.19+""#,
        };
        response(200, Some(("warning", warning)), b"")
    });
    for _ in 0..3 {
        client.send(request("GET", "/version")).await.unwrap();
    }
    assert_eq!(
        *seen.lock(),
        ["v1 ComponentStatus is deprecated in v1.19+", "another"]
    );
}

/// The text "hello", compressed by gzip.
const HELLO: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07,
    0x00, 0x86, 0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00,
];

#[tokio::test]
async fn responses_may_be_compressed_but_not_those_of_watches() {
    fn script(_: usize, request: &Request<Body>) -> Response<Body> {
        let accept = request.headers().get("accept-encoding");
        match accept.map(|accept| accept.to_str().unwrap()) {
            Some("gzip") => response(200, Some(("content-encoding", "gzip")), HELLO),
            other => response(200, None, format!("{other:?}").as_bytes()),
        }
    }
    let text = async |client: &kube::Client, uri: &str| {
        let request = Request::get(uri).body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap()
    };
    let (client, _) = scripted(ClientOptions::default(), script);
    assert_eq!(text(&client, "/api/v1/pods").await, "hello");
    let watch = text(&client, "/api/v1/pods?watch=true").await;
    assert_eq!(watch, r#"Some("identity")"#);
    let options = ClientOptions {
        gzip: false,
        ..Default::default()
    };
    let (client, _) = scripted(options, script);
    assert_eq!(text(&client, "/api/v1/pods").await, "None");
}

#[tokio::test]
async fn the_user_agent_starts_with_the_program() {
    let (client, _) = scripted(ClientOptions::default(), |_, request| {
        response(200, None, request.headers()["user-agent"].as_bytes())
    });
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let agent = client.request_text(request).await.unwrap();
    assert!(agent.starts_with("opkit_client"), "{agent}");
}
