use std::net::Ipv4Addr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::StreamBody;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tower::ServiceExt;

use super::*;
use crate::authority::Pair;
use crate::{Options, Server};

const LONG: Duration = Duration::from_secs(30);

async fn start(limits: Limits) -> (Server, Endpoint) {
    let server = Server::start(Options::default()).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = server.listen_within(address, limits, None).await.unwrap();
    (server, endpoint)
}

/// Opens a TLS connection for HTTP/1, without a client certificate.
async fn connect(endpoint: &Endpoint) -> tokio_rustls::client::TlsStream<TcpStream> {
    connect_with(endpoint, None).await
}

/// Opens a TLS connection for HTTP/1, with this client certificate.
async fn connect_with(
    endpoint: &Endpoint,
    client: Option<&Pair>,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let config: Value = serde_saphyr::from_str(&endpoint.kubeconfig()).unwrap();
    let authority = config["clusters"][0]["cluster"]["certificate-authority-data"].clone();
    let authority = BASE64_STANDARD.decode(authority.as_str().unwrap()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(&authority).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(client) => {
            let key = PrivatePkcs8KeyDer::from(client.key.clone()).into();
            let chain = vec![client.certificate.clone()];
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(endpoint.address()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = ServerName::from(endpoint.address().ip());
    connector.connect(name, stream).await.unwrap()
}

/// Waits until the server has closed the connection, and returns the bytes that it sent.
async fn rest(mut stream: impl tokio::io::AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A connection that the server drops ends with an error or with an end of file.
    let _ = timeout(LONG, stream.read_to_end(&mut bytes))
        .await
        .expect("the connection is still open");
    bytes
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_handshake_is_closed() {
    let (_server, endpoint) = start(Limits::default()).await;
    let began = tokio::time::Instant::now();
    let stream = TcpStream::connect(endpoint.address()).await.unwrap();
    assert!(rest(stream).await.is_empty());
    assert!(began.elapsed() <= Limits::default().authentication * 2);
}

#[tokio::test]
async fn a_connection_without_credentials_is_closed() {
    let limits = Limits {
        authentication: Duration::from_millis(300),
        ..Limits::default()
    };
    let (_server, endpoint) = start(limits).await;
    assert!(rest(connect(&endpoint).await).await.is_empty(), "silent");

    let mut stream = connect(&endpoint).await;
    let request = b"GET /version HTTP/1.1\r\nhost: a\r\nauthorization: Bearer no\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let sent = rest(stream).await;
    assert!(
        sent.starts_with(b"HTTP/1.1 401 "),
        "{:?}",
        Bytes::from(sent)
    );

    // An anonymous request gets a response, and does not keep the connection open.
    let mut stream = connect(&endpoint).await;
    let request = b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n";
    stream.write_all(request).await.unwrap();
    assert!(rest(stream).await.starts_with(b"HTTP/1.1 200 "));

    let mut stream = connect(&endpoint).await;
    let token = &endpoint.admin_token;
    let request =
        format!("GET /version HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let ended = timeout(limits.authentication * 3, read).await;
    assert!(ended.is_err(), "an authenticated connection stays open");
    assert!(bytes.starts_with(b"HTTP/1.1 200 "));
}

#[tokio::test]
async fn silent_connections_do_not_lock_out_clients() {
    let limits = Limits {
        connections: 2,
        authentication: LONG * 2,
    };
    let (_server, endpoint) = start(limits).await;
    let first = TcpStream::connect(endpoint.address()).await.unwrap();
    let _second = TcpStream::connect(endpoint.address()).await.unwrap();
    let mut third = connect(&endpoint).await;
    rest(first).await;
    third
        .write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut head = [0; 13];
    timeout(LONG, third.read_exact(&mut head))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 ");
}

#[tokio::test(start_paused = true)]
async fn a_body_is_not_read_before_authentication() {
    let server = Server::start(Options::default()).unwrap();
    let service = server.remote_service();
    let endless = futures::stream::pending::<Result<http_body::Frame<Bytes>, std::io::Error>>();
    let request = Request::post("/api/v1/namespaces/default/configmaps")
        .header("authorization", "Bearer wrong")
        .body(StreamBody::new(endless))
        .unwrap();
    let response = timeout(LONG, service.oneshot(request)).await;
    assert_eq!(response.expect("the body is read").unwrap().status(), 401);
}

#[tokio::test]
async fn a_client_certificate_names_the_user() {
    let (_server, endpoint) = start(Limits::default()).await;
    let request = b"GET /api/v1/pods HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let unknown = Authority::create("test-ca").unwrap();
    for (authority, start, part) in [
        (
            &*endpoint.authority,
            "HTTP/1.1 403 ",
            "User \\\"jane\\\" cannot list",
        ),
        (&unknown, "HTTP/1.1 401 ", "Unauthorized"),
    ] {
        let pair = authority.issue_for_client("jane", "dev").unwrap();
        let mut stream = connect_with(&endpoint, Some(&pair)).await;
        stream.write_all(request).await.unwrap();
        let text = String::from_utf8_lossy(&rest(stream).await).into_owned();
        assert!(text.starts_with(start) && text.contains(part), "{text}");
    }
    let admin = endpoint.certificates.admin();
    let mut stream = connect_with(&endpoint, Some(admin)).await;
    stream.write_all(request).await.unwrap();
    assert!(rest(stream).await.starts_with(b"HTTP/1.1 200 "));
}
