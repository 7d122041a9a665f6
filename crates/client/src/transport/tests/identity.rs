//! Client certificates of connections, with a TLS server that authenticates by them.

use std::path::Path;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::*;

/// Certificate and key of a user, in PEM, and the certificate in DER.
struct User {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

fn user() -> User {
    let signed = rcgen::generate_simple_self_signed(vec!["user".to_owned()]).unwrap();
    User {
        certificate: signed.cert.pem(),
        key: signed.signing_key.serialize_pem(),
        der: signed.cert.der().clone(),
    }
}

/// Starts a server that responds with the number of the connection, and the index of the user whose
/// certificate the connection has. The path `/only/N` is refused for other users than N.
async fn serve(users: &[User]) -> (kube::Config, JoinSet<()>) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for user in users {
        roots.add(user.der.clone()).unwrap();
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let key = signed.signing_key.serialize_der();
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
        .with_single_cert(vec![signed.cert.der().clone()], key.try_into().unwrap())
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let mut config = kube::Config::new(url.parse().unwrap());
    config.root_cert = Some(vec![signed.cert.der().to_vec()]);
    config.tls_server_name = Some("localhost".to_owned());
    let users: Vec<_> = users.iter().map(|user| user.der.clone()).collect();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        for number in 1.. {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, users) = (acceptor.clone(), users.clone());
            connections.spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let peer = stream.get_ref().1.peer_certificates();
                let peer = peer.and_then(|chain| users.iter().position(|it| *it == chain[0]));
                let peer = peer.map_or("nobody".to_owned(), |index| index.to_string());
                let service = hyper::service::service_fn(|request: Request<Incoming>| {
                    let only = request.uri().path().strip_prefix("/only/");
                    let code = if only.is_none_or(|it| it == peer) {
                        200
                    } else {
                        401
                    };
                    let response = Response::builder().status(code);
                    let text = format!("connection {number} of {peer}");
                    async move { response.body(Body::from(text.into_bytes())) }
                });
                let connection = TokioIo::new(stream);
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(connection, service).await;
            });
        }
    });
    (config, tasks)
}

async fn get(client: &kube::Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await
}

fn write(folder: &Path, user: &User) {
    std::fs::write(folder.join("tls.crt"), &user.certificate).unwrap();
    std::fs::write(folder.join("tls.key"), &user.key).unwrap();
}

#[tokio::test]
async fn a_new_certificate_in_the_files_gets_a_new_connection() {
    let users = [user(), user()];
    let (mut config, _tasks) = serve(&users).await;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &users[0]);
    let path = |name: &str| Some(folder.path().join(name).to_str().unwrap().to_owned());
    config.auth_info.client_certificate = path("tls.crt");
    config.auth_info.client_key = path("tls.key");
    let client = ClientOptions::default().client(config).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&client, "/").await.unwrap(), "connection 1 of 0");
    }
    write(folder.path(), &users[1]);
    // The files are read again after a minute, or for a new connection.
    assert_eq!(get(&client, "/").await.unwrap(), "connection 1 of 0");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    for _ in 0..2 {
        assert_eq!(get(&client, "/").await.unwrap(), "connection 2 of 1");
    }
}

#[tokio::test]
async fn a_plugin_replaces_a_certificate_that_is_refused() {
    let users = [user(), user()];
    let (mut config, _tasks) = serve(&users).await;
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    let print = |user: &User| {
        let credential = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {
                "clientCertificateData": user.certificate, "clientKeyData": user.key,
            },
        });
        std::fs::write(&output, credential.to_string()).unwrap();
    };
    print(&users[0]);
    config.auth_info = AuthInfo {
        exec: Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("cat".to_owned()),
            args: Some(vec![output.to_str().unwrap().to_owned()]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        }),
        ..AuthInfo::default()
    };
    let client = ClientOptions::default().client(config).unwrap();
    assert_eq!(get(&client, "/only/0").await.unwrap(), "connection 1 of 0");
    print(&users[1]);
    assert!(get(&client, "/only/1").await.is_err());
    assert_eq!(get(&client, "/only/1").await.unwrap(), "connection 2 of 1");
}

#[tokio::test]
async fn without_a_certificate_nobody_connects() {
    let (config, _tasks) = serve(&[user()]).await;
    let client = ClientOptions::default().client(config).unwrap();
    assert_eq!(get(&client, "/").await.unwrap(), "connection 1 of nobody");
}
