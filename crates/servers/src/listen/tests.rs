use std::net::Ipv6Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;

use super::*;

/// Starts a server and returns its address, the token that stops it, and its task. Each request
/// adds a permit to `arrived`, and its response waits for a permit of `permits`.
async fn start_within(
    limits: ConnectionLimits,
    arrived: Arc<Semaphore>,
    permits: Arc<Semaphore>,
) -> (SocketAddr, CancellationToken, JoinSet<()>) {
    let (listener, address) = bind("tests", ([127, 0, 0, 1], 0).into()).await.unwrap();
    let handler: RequestHandler = Arc::new(move |request| {
        let permits = permits.clone();
        arrived.add_permits(1);
        async move {
            permits.acquire().await.unwrap().forget();
            text(StatusCode::OK, request.uri().path().to_owned())
        }
        .boxed()
    });
    let stop = CancellationToken::new();
    let (stopped, mut serving) = (stop.clone(), JoinSet::new());
    serving.spawn(async move {
        serve_within(
            limits,
            RequestTimeouts::default(),
            &listener,
            None,
            handler,
            stopped,
        )
        .await;
    });
    (address, stop, serving)
}

async fn start(
    arrived: Arc<Semaphore>,
    permits: Arc<Semaphore>,
) -> (SocketAddr, CancellationToken, JoinSet<()>) {
    start_within(CONNECTION_LIMITS, arrived, permits).await
}

/// Connects from the loopback address `peer`.
async fn connect_from(peer: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((peer, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

async fn send(address: SocketAddr, path: &str) -> TcpStream {
    send_from([127, 0, 0, 1], address, path).await
}

async fn send_from(peer: [u8; 4], address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect_from(peer, address).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read(mut stream: TcpStream) -> String {
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_requests_and_closes_idle_connections() {
    let permits = Arc::new(Semaphore::new(0));
    let arrived = Arc::new(Semaphore::new(0));
    let (address, stop, mut serving) = start(arrived.clone(), permits.clone()).await;
    let idle = TcpStream::connect(address).await.unwrap();
    let busy = send(address, "/busy").await;
    arrived.acquire().await.unwrap().forget();
    stop.cancel();
    tokio::task::yield_now().await;
    permits.add_permits(1);
    let response = read(busy).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.ends_with("/busy"), "{response}");
    serving.join_next().await.unwrap().unwrap();
    assert_eq!(read(idle).await, "");
}

async fn request(stream: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// An API server connects, and sends the request after the TLS handshake: a stop in between must
/// not lose it.
#[tokio::test]
async fn a_stop_serves_the_first_request_of_a_new_connection() {
    let permits = Arc::new(Semaphore::new(9));
    let arrived = Arc::new(Semaphore::new(0));
    let (address, stop, mut serving) = start(arrived.clone(), permits).await;
    let mut new = TcpStream::connect(address).await.unwrap();
    // Connections are accepted in their order.
    let _other = send(address, "/other").await;
    arrived.acquire().await.unwrap().forget();
    stop.cancel();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    request(&mut new, "/late").await;
    let response = read(new).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("connection: close\r\n"), "{response}");
    assert!(response.ends_with("/late"), "{response}");
    serving.join_next().await.unwrap().unwrap();
}

/// The request has arrived at this machine, and the server has not read it yet.
#[tokio::test]
async fn a_stop_serves_a_request_that_has_arrived() {
    let permits = Arc::new(Semaphore::new(9));
    let (address, stop, mut serving) = start(Arc::new(Semaphore::new(0)), permits).await;
    let mut stream = send(address, "/first").await;
    let mut response = [0; 4096];
    let length = stream.read(&mut response).await.unwrap();
    let first = String::from_utf8_lossy(&response[..length]).into_owned();
    assert!(!first.contains("connection: close"), "{first}");
    request(&mut stream, "/second").await;
    stop.cancel();
    let response = read(stream).await;
    assert!(response.contains("connection: close\r\n"), "{response}");
    assert!(response.ends_with("/second"), "{response}");
    serving.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_new_connections_for_a_limited_time() {
    let permits = Arc::new(Semaphore::new(9));
    let arrived = Arc::new(Semaphore::new(0));
    let (address, stop, mut serving) = start(arrived.clone(), permits).await;
    let silent = TcpStream::connect(address).await.unwrap();
    let idle = send(address, "/idle").await;
    arrived.acquire().await.unwrap().forget();
    stop.cancel();
    let begin = tokio::time::Instant::now();
    read(idle).await;
    assert!(
        begin.elapsed() <= IDLE_GRACE_PERIOD * 2,
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(read(silent).await, "");
    serving.join_next().await.unwrap().unwrap();
    let waited = begin.elapsed();
    assert!(
        waited >= NEW_CONNECTION_GRACE_PERIOD && waited < SHUTDOWN_GRACE_PERIOD,
        "{waited:?}"
    );
}

#[tokio::test]
async fn connections_wait_while_all_others_are_busy() {
    let limits = ConnectionLimits {
        connections: 4,
        per_peer: 2,
    };
    let (arrived, permits) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (address, stop, _serving) = start_within(limits, arrived.clone(), permits.clone()).await;
    let mut busy = Vec::new();
    for peer in [1, 1, 2, 2] {
        busy.push(send_from([127, 0, 0, peer], address, "/first").await);
        arrived.acquire().await.unwrap().forget();
    }
    let mut last = send_from([127, 0, 0, 3], address, "/last").await;
    let mut byte = [0];
    assert!(last.read_exact(&mut byte).now_or_never().is_none());
    permits.add_permits(limits.connections);
    for stream in &mut busy {
        stream.read_exact(&mut byte).await.unwrap();
    }
    // An idle connection is closed in favour of the new one.
    arrived.acquire().await.unwrap().forget();
    permits.add_permits(1);
    last.read_exact(&mut byte).await.unwrap();
    stop.cancel();
}

#[tokio::test]
async fn a_peer_at_its_limit_is_rejected_and_another_one_served() {
    let limits = ConnectionLimits {
        connections: 4,
        per_peer: 2,
    };
    let (arrived, permits) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (address, _stop, _serving) = start_within(limits, arrived.clone(), permits.clone()).await;
    let mut busy = Vec::new();
    for _ in 0..limits.per_peer {
        busy.push(send(address, "/first").await);
        arrived.acquire().await.unwrap().forget();
    }
    let mut rejected = connect_from([127, 0, 0, 1], address).await;
    let mut byte = [0];
    // The server closes the connection: the end of the stream, or a reset.
    assert!(matches!(rejected.read(&mut byte).await, Ok(0) | Err(_)));
    let mut other = send_from([127, 0, 0, 2], address, "/other").await;
    arrived.acquire().await.unwrap().forget();
    permits.add_permits(3);
    other.read_exact(&mut byte).await.unwrap();
}

/// Any pod can open connections; any number of idle ones must not block a kubelet's probe.
#[tokio::test]
async fn silent_connections_do_not_starve_a_probe() {
    let permits = Arc::new(Semaphore::new(1000));
    let (address, _stop, _serving) = start(Arc::new(Semaphore::new(0)), permits).await;
    let mut silent = Vec::new();
    for n in 0..CONNECTION_LIMITS.connections + CONNECTION_LIMITS.per_peer {
        let peer = 2 + u8::try_from(n / CONNECTION_LIMITS.per_peer).unwrap();
        silent.push(connect_from([127, 0, 0, peer], address).await);
    }
    // A peer without connections and a peer at its limit each send two requests on one connection.
    for peer in [1, 3] {
        let mut probe = send_from([127, 0, 0, peer], address, "/healthz").await;
        for _ in 0..2 {
            let mut response = [0; 15];
            probe.read_exact(&mut response).await.unwrap();
            assert_eq!(&response, b"HTTP/1.1 200 OK");
            let mut rest = [0; 4096];
            let _ = probe.read(&mut rest).await.unwrap();
            probe
                .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
                .await
                .unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_first_request_is_closed_soon() {
    let (address, _stop, _serving) =
        start(Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(9))).await;
    let limits = RequestTimeouts::default();
    let start = tokio::time::Instant::now();
    assert_eq!(read(TcpStream::connect(address).await.unwrap()).await, "");
    let waited = start.elapsed();
    assert!(
        waited >= limits.first_request && waited < limits.next_request,
        "{waited:?}"
    );

    // A connection that has sent a request may be idle for longer.
    let start = tokio::time::Instant::now();
    let response = read(send(address, "/one").await).await;
    assert!(response.ends_with("/one"), "{response}");
    assert!(
        start.elapsed() >= limits.next_request,
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_header_that_is_too_large_is_rejected() {
    let (address, _stop, _serving) =
        start(Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1))).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\na: {}\r\n\r\n",
        "x".repeat(2 * HEADER_MAX_BYTES)
    );
    // The server may close the connection during the write.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8_lossy(&response);
    assert!(!response.contains("200 OK"), "{response}");
}

#[tokio::test]
async fn the_unspecified_address_accepts_ipv4_and_ipv6() {
    // On a machine without IPv6, only IPv4 addresses are bound.
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
fn only_the_unspecified_address_falls_back() {
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

#[tokio::test]
async fn packets_do_not_wait_for_those_before_them() {
    let (listener, address) = bind("tests", ([127, 0, 0, 1], 0).into()).await.unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (accepted, peer) = accept(&listener).await.unwrap();
    assert!(accepted.nodelay().unwrap());
    assert_eq!(peer, client.local_addr().unwrap());
}
