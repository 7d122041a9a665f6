//! Connections to a TCP listener with TLS.

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::*;

/// Creates a listener with a self-signed certificate, and the configuration to connect to it.
pub(super) async fn listen(protocols: &[&[u8]]) -> (TlsAcceptor, TcpListener, kube::Config) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (der, key) = (
        signed.cert.der().clone(),
        signed.signing_key.serialize_der(),
    );
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    let mut tls = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der.clone()], key.try_into().unwrap())
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("https://127.0.0.1:{port}").parse().unwrap();
    let mut config = kube::Config::new(url);
    config.root_cert = Some(vec![der.to_vec()]);
    config.tls_server_name = Some("localhost".to_owned());
    (acceptor, listener, config)
}

/// Starts a server that allows 100 concurrent requests per connection, like kube-apiserver. It
/// responds to `/hang` with a body that never ends, and to other paths with the HTTP version and
/// the number of connections so far.
pub(super) async fn serve(protocols: &'static [&'static [u8]]) -> (kube::Config, JoinSet<()>) {
    let (acceptor, listener, config) = listen(protocols).await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        let count = Arc::new(AtomicUsize::new(0));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, count) = (acceptor.clone(), count.clone());
            connections.spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let service = hyper::service::service_fn(|request: Request<Incoming>| {
                    let text = format!("{:?} {}", request.version(), count.load(Ordering::Relaxed));
                    async move {
                        if request
                            .headers()
                            .get("upgrade")
                            .is_some_and(|it| it == "echo")
                        {
                            return Ok::<_, Infallible>(upgraded(request));
                        }
                        let body = if request.uri().path() == "/hang" {
                            let frame = futures::stream::iter([Ok::<_, Infallible>(
                                hyper::body::Frame::data(bytes::Bytes::from_static(b"x")),
                            )]);
                            let rest = futures::stream::pending();
                            let stream = futures::StreamExt::chain(frame, rest);
                            boxed(http_body_util::StreamBody::new(stream))
                        } else {
                            boxed(http_body_util::Full::new(bytes::Bytes::from(text)))
                        };
                        Ok(Response::new(body))
                    }
                });
                let mut builder = auto::Builder::new(TokioExecutor::new());
                builder.http2().max_concurrent_streams(100);
                let connection = TokioIo::new(stream);
                let _ = builder
                    .serve_connection_with_upgrades(connection, service)
                    .await;
            });
        }
    });
    (config, tasks)
}

/// Upgrades the connection to a protocol that echoes all bytes.
#[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
fn upgraded(mut request: Request<Incoming>) -> Response<ResponseBody> {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let stream = TokioIo::new(upgrade.await.unwrap());
        let (mut read, mut write) = tokio::io::split(stream);
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "echo")
        .body(boxed(http_body_util::Empty::new()))
        .unwrap()
}

pub(super) async fn text(client: &kube::Client, request: http::request::Builder) -> String {
    let request = request.body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

#[tokio::test]
async fn http2_is_spoken_where_the_server_does_but_not_for_upgrades() {
    let (config, _tasks) = serve(&[b"h2", b"http/1.1"]).await;
    let client = ClientOptions::default().client(config.clone()).unwrap();
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/2.0 1");
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/2.0 1");
    let upgrade = Request::get("/x").header("upgrade", "websocket");
    assert_eq!(text(&client, upgrade).await, "HTTP/1.1 2");

    let options = ClientOptions {
        http2: false,
        ..Default::default()
    };
    let client = options.client(config).unwrap();
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/1.1 3");

    let (config, _tasks) = serve(&[]).await;
    let client = ClientOptions::default().client(config).unwrap();
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/1.1 1");
}

#[tokio::test]
async fn more_watches_than_a_connection_takes_get_another() {
    let (config, _tasks) = serve(&[b"h2"]).await;
    let client = ClientOptions::default().client(config).unwrap();
    let mut hanging = Vec::new();
    for _ in 0..250 {
        let request = Request::get("/hang").body(Body::empty()).unwrap();
        let response = client.send(request).await.unwrap();
        let mut body = response.into_body();
        http_body_util::BodyExt::frame(&mut body)
            .await
            .unwrap()
            .unwrap();
        hanging.push(body);
    }
    // The first two connections have 96 requests each, the third has the rest and is not full.
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/2.0 3");
    drop(hanging);
    assert_eq!(text(&client, Request::get("/x")).await, "HTTP/2.0 3");
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_and_then_named() {
    // The port of a closed listener refuses connections.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let config = kube::Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    let options = ClientOptions::default();
    let metrics = options.metrics.clone();
    let client = options.client(config).unwrap();
    let request = Request::get("/x").body(Body::empty()).unwrap();
    let error = crate::one_line(&client.send(request).await.err().unwrap());
    assert!(error.to_lowercase().contains("refused"), "{error}");
    let line = format!(
        r#"rest_client_requests_total{{code="<error>",method="GET",host="127.0.0.1:{port}"}} 4"#
    );
    let text = metrics.encode();
    assert!(text.contains(&line), "{text}");
}

#[tokio::test]
async fn a_protocol_can_be_changed_through_all_layers() {
    let (config, _tasks) = serve(&[b"h2", b"http/1.1"]).await;
    let seam = crate::Seam::new();
    let options = ClientOptions {
        seam: Some(seam.layer()),
        ..Default::default()
    };
    let client = options.client(config).unwrap();
    let request = Request::get("/api/v1/namespaces/a/pods/b/exec")
        .header("connection", "upgrade")
        .header("upgrade", "echo")
        .body(Body::empty());
    let response = client.send(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 101);
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"hello").await.unwrap();
    let mut echo = [0; 5];
    stream.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"hello");
}
