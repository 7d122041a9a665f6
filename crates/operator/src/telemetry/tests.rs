use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tracing::subscriber::with_default;
use tracing::{debug_span, info_span};

use super::*;

/// Accepts one request, responds, and returns the whole request as lossy text.
async fn collect(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    loop {
        let read = stream.read_buf(&mut request).await.unwrap();
        let text = String::from_utf8_lossy(&request);
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let end = text.find("\r\n\r\n").map(|end| end + 4);
        if let (Some(length), Some(end)) = (length, end) {
            let length: usize = length.trim().parse().unwrap();
            let head = request
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .unwrap()
                + 4;
            assert!(end >= head);
            if request.len() >= head + length {
                break;
            }
        }
        assert!(read > 0, "the request ended: {text}");
    }
    let response = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(response.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&request).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_are_sent_when_the_operator_stops() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let telemetry = Telemetry::new(Some("robot-operator"), Some(endpoint)).unwrap();
    with_default(
        tracing_subscriber::registry().with(telemetry.layer()),
        || {
            let reconcile =
                info_span!("reconcile", controller = "robot", object = "shop/robot-one");
            let _in_it = reconcile.entered();
            info_span!("own_span").in_scope(|| {});
            debug_span!("hidden_span").in_scope(|| {});
        },
    );
    let ((), sent) = tokio::join!(telemetry.shut_down(), collect(listener));
    assert!(sent.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("application/x-protobuf"), "{sent}");
    for part in ["robot-operator", "reconcile", "shop/robot-one", "own_span"] {
        assert!(sent.contains(part), "no {part} in {sent}");
    }
    assert!(!sent.contains("hidden_span"), "{sent}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_collector_does_not_delay_the_shutdown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    drop(listener);
    let telemetry = Telemetry::new(Some("robot-operator"), Some(endpoint)).unwrap();
    with_default(
        tracing_subscriber::registry().with(telemetry.layer()),
        || {
            info_span!("reconcile").in_scope(|| {});
        },
    );
    let begin = tokio::time::Instant::now();
    telemetry.shut_down().await;
    assert!(begin.elapsed() < FLUSH_TIMEOUT + Duration::from_secs(1));
}
