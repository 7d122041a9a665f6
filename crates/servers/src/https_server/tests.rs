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
    let directory = tempfile::tempdir().unwrap();
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = generated.signing_key.serialize_pem();
    std::fs::write(directory.path().join("tls.crt"), generated.cert.pem()).unwrap();
    std::fs::write(directory.path().join("tls.key"), key).unwrap();
    let certificate = crate::ServerCertificate::read(directory.path()).unwrap();
    let server = HttpsServer::listen("tests", ([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
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
        let stop = CancellationToken::new();
        server
            .serve(Arc::new(certificate), limit, respond, stop)
            .await
            .unwrap();
    });
    (address, generated.cert.der().clone())
}

async fn connect(address: SocketAddr, trusted: &CertificateDer<'static>) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
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
async fn bodies_wait_for_memory() {
    let memory = Semaphore::new(200);
    let mut headers = HeaderMap::new();
    let first = reserve(&memory, &headers, 100 * 1024).await.unwrap();
    headers.insert(header::CONTENT_LENGTH, "1025".parse().unwrap());
    let second = reserve(&memory, &headers, 100 * 1024).await.unwrap();
    // A body of unknown size reserves the limit, and one of 1025 bytes two units.
    assert_eq!(memory.available_permits(), 98);
    headers.insert(header::CONTENT_LENGTH, "102400".parse().unwrap());
    let mut third = Box::pin(reserve(&memory, &headers, 100 * 1024));
    assert!(futures::poll!(&mut third).is_pending());
    drop((first, second));
    assert!(third.await.unwrap().is_some());
}
