use std::net::Ipv6Addr;

use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use super::*;

/// A server, and the token that stops it. Each request gives one permit of the first and its answer
/// takes one of the second.
async fn start(
    arrived: Arc<Semaphore>,
    permits: Arc<Semaphore>,
) -> (SocketAddr, CancellationToken, JoinSet<()>) {
    let (listener, address) = bind("tests", ([127, 0, 0, 1], 0).into()).await.unwrap();
    let handler: Handler = Arc::new(move |request| {
        let permits = permits.clone();
        arrived.add_permits(1);
        async move {
            permits.acquire().await.unwrap().forget();
            text(StatusCode::OK, request.uri.path().to_owned())
        }
        .boxed()
    });
    let stop = CancellationToken::new();
    let (stopped, mut serving) = (stop.clone(), JoinSet::new());
    serving.spawn(async move { serve(&listener, None, handler, stopped).await });
    (address, stop, serving)
}

async fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_stop_lets_requests_end_and_idle_connections_go() {
    let permits = Arc::new(Semaphore::new(0));
    let arrived = Arc::new(Semaphore::new(0));
    let (address, stop, mut serving) = start(arrived.clone(), permits.clone()).await;
    let idle = TcpStream::connect(address).await.unwrap();
    let busy = send(address, "/busy").await;
    arrived.acquire().await.unwrap().forget();
    stop.cancel();
    tokio::task::yield_now().await;
    permits.add_permits(1);
    let answer = read(busy).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("/busy"), "{answer}");
    serving.join_next().await.unwrap().unwrap();
    assert_eq!(read(idle).await, "");
}

#[tokio::test]
async fn connections_above_the_bound_wait() {
    let permits = Arc::new(Semaphore::new(0));
    let (address, stop, _serving) = start(Arc::new(Semaphore::new(0)), permits.clone()).await;
    let mut first = Vec::new();
    for _ in 0..CONNECTIONS {
        first.push(send(address, "/first").await);
    }
    let mut last = send(address, "/last").await;
    // Every request that was accepted may be answered, and the last one was not.
    permits.add_permits(CONNECTIONS);
    for stream in &mut first {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
    }
    permits.add_permits(1);
    let mut byte = [0];
    assert!(last.read_exact(&mut byte).now_or_never().is_none());
    drop(first);
    last.read_exact(&mut byte).await.unwrap();
    stop.cancel();
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let (address, _stop, _serving) =
        start(Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1))).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\na: {}\r\n\r\n",
        "x".repeat(2 * HEAD_BYTES)
    );
    // The server may hang up while it is being written.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test]
async fn every_address_is_of_both_families() {
    // On a machine without IPv6 it is those of IPv4.
    let (listener, address) = bind("tests", (Ipv6Addr::UNSPECIFIED, 0).into())
        .await
        .unwrap();
    let port = address.port();
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    listener.accept().await.unwrap();
    drop(client);
    if address.is_ipv6() {
        TcpStream::connect((Ipv6Addr::LOCALHOST, port))
            .await
            .unwrap();
    }
}

#[test]
fn only_every_address_falls_back() {
    let check = |address: &str, error: ErrorKind, expected: Option<&str>| {
        let fallback = without_ipv6(address.parse().unwrap(), error);
        assert_eq!(fallback.map(|it| it.to_string()).as_deref(), expected);
    };
    check("[::]:80", ErrorKind::AddrNotAvailable, Some("0.0.0.0:80"));
    check("[::]:80", ErrorKind::Unsupported, Some("0.0.0.0:80"));
    check("[::]:80", ErrorKind::AddrInUse, None);
    check("[::]:80", ErrorKind::PermissionDenied, None);
    check("[::1]:80", ErrorKind::AddrNotAvailable, None);
    check("0.0.0.0:80", ErrorKind::AddrNotAvailable, None);
}
