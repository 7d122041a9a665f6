use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

/// Starts a server whose responses are the bodies of the requests, or the reasons why they were not
/// read. Returns its address and certificate.
async fn start(tasks: &mut JoinSet<()>) -> (SocketAddr, CertificateDer<'static>) {
    start_with(tasks, false, CancellationToken::new()).await
}

async fn start_with(
    tasks: &mut JoinSet<()>,
    enable_http2: bool,
    stop: CancellationToken,
) -> (SocketAddr, CertificateDer<'static>) {
    let directory = tempfile::tempdir().unwrap();
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = generated.signing_key.serialize_pem();
    std::fs::write(directory.path().join("tls.crt"), generated.cert.pem()).unwrap();
    std::fs::write(directory.path().join("tls.key"), key).unwrap();
    let certificate = crate::ServerCertificate::read(directory.path()).unwrap();
    let server = HttpsServer::listen("tests", ([127, 0, 0, 1], 0).into())
        .await
        .unwrap()
        .enable_http2(enable_http2);
    let address = server.address();
    tasks.spawn(async move {
        let respond = |_: Parts, body: Result<Bytes, BodyError>| async {
            Response::new(body.unwrap_or_else(|error| error.to_string().into()))
        };
        let limit = |parts: &Parts| {
            if parts.uri.path() == "/unread" {
                0
            } else {
                100_000
            }
        };
        server
            .serve(Arc::new(certificate), limit, respond, stop)
            .await
            .unwrap();
    });
    (address, generated.cert.der().clone())
}

async fn connect(address: SocketAddr, trusted: &CertificateDer<'static>) -> TlsStream<TcpStream> {
    connect_with(address, trusted, &[]).await
}

/// Connects with these protocols, the best one first.
async fn connect_with(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    protocols: &[&str],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.unwrap()
}

/// Sends a request and returns the body of the response.
async fn send(server: &(SocketAddr, CertificateDer<'static>), request: &[u8]) -> String {
    let mut stream = connect(server.0, &server.1).await;
    // The server may respond before it has read all.
    let _ = stream.write_all(request).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8(response).unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn request(path: &str, header: &str, body: &str) -> Vec<u8> {
    let text =
        format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{header}\r\n\r\n{body}");
    text.into_bytes()
}

#[tokio::test]
async fn bodies_are_read_within_their_limit() {
    let mut tasks = JoinSet::new();
    let server = start(&mut tasks).await;
    let body = "x".repeat(100_000);
    let length = |body: &str| format!("content-length: {}", body.len());
    assert_eq!(
        send(&server, &request("/", &length(&body), &body)).await,
        body
    );
    let chunked = "transfer-encoding: chunked";
    let chunks = request("/", chunked, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    assert_eq!(send(&server, &chunks).await, "abc");
    let too_large = "the body has more than 100000 bytes";
    let body = "x".repeat(100_001);
    assert_eq!(
        send(&server, &request("/", &length(&body), "")).await,
        too_large
    );
    let endless = format!("{:x}\r\n{body}\r\n", body.len());
    assert_eq!(
        send(&server, &request("/", chunked, &endless)).await,
        too_large
    );
    assert_eq!(
        send(&server, &request("/unread", &length("abc"), "abc")).await,
        ""
    );
}

#[tokio::test]
async fn a_slow_body_is_not_waited_for() {
    let mut tasks = JoinSet::new();
    let server = start(&mut tasks).await;
    let mut stream = connect(server.0, &server.1).await;
    stream
        .write_all(&request("/", "content-length: 10", "half "))
        .await
        .unwrap();
    // The clock stands still from here on, and jumps to the end of the time limit.
    tokio::time::pause();
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response).await;
    assert!(
        response.ends_with("the body was not sent within 10 s"),
        "{response}"
    );
}

#[tokio::test]
async fn http2_is_used_only_where_it_is_enabled() {
    for (is_enabled, expected) in [(false, "http/1.1"), (true, "h2")] {
        let mut tasks = JoinSet::new();
        let stop = CancellationToken::new();
        let (address, trusted) = start_with(&mut tasks, is_enabled, stop).await;
        let both = connect_with(address, &trusted, &["h2", "http/1.1"]).await;
        assert_eq!(both.get_ref().1.alpn_protocol(), Some(expected.as_bytes()));
        let old = connect_with(address, &trusted, &["http/1.1"]).await;
        assert_eq!(old.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let server = (address, trusted);
        let response = send(&server, &request("/", "content-length: 2", "ab")).await;
        assert_eq!(response, "ab");
    }
}

/// A stop completes the requests of an HTTP/2 connection and closes the connection.
#[tokio::test]
async fn an_http2_connection_has_several_requests_until_the_stop() {
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    let (address, trusted) = start_with(&mut tasks, true, stop.clone()).await;
    let stream = connect_with(address, &trusted, &["h2"]).await;
    let (client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let mut closed = JoinSet::new();
    closed.spawn(connection);
    // The bodies are sent by the test, so that both requests are in progress at the same time.
    let mut bodies = Vec::new();
    let mut responses = Vec::new();
    for _ in 0..2 {
        let (sender, body) = tokio::sync::mpsc::channel::<Bytes>(1);
        let body = futures::stream::unfold(body, async |mut body| {
            let data = body.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(Frame::data(data)), body))
        });
        let request = http::Request::post(format!("https://localhost:{}/", address.port()))
            .body(BoxBody::new(StreamBody::new(body)))
            .unwrap();
        let mut client = client.clone();
        client.ready().await.unwrap();
        responses.push(tokio::task::JoinSet::new());
        responses.last_mut().unwrap().spawn(async move {
            let response = client.send_request(request).await.unwrap();
            response.into_body().collect().await.unwrap().to_bytes()
        });
        bodies.push(sender);
    }
    bodies[1].send("second".into()).await.unwrap();
    bodies.truncate(1);
    let second = responses.pop().unwrap().join_all().await;
    assert_eq!(second, ["second"], "it does not wait for the first one");

    stop.cancel();
    bodies[0].send("first".into()).await.unwrap();
    bodies.clear();
    let first = responses.pop().unwrap().join_all().await;
    assert_eq!(first, ["first"]);
    tasks.join_next().await.unwrap().unwrap();
    closed.join_next().await.unwrap().unwrap().unwrap();
}
