use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use opkit_controller::Error;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::*;
use crate::tests::{VALIDATE, config_map, one, review};
use crate::{Admission, AdmissionRequest, Webhook, WebhookContext};

/// Returns a self-signed certificate for `localhost`, and its key.
fn certificate() -> (CertificateDer<'static>, CertifiedKey) {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (generated.cert.pem(), generated.signing_key.serialize_pem());
    let key = CertificateSource::key_from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    (generated.cert.der().clone(), key)
}

struct Running {
    server: Arc<WebhookServer>,
    shutdown: CancellationToken,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

async fn start(webhook: Webhook<ConfigMap>, certificates: CertificateSource) -> Running {
    let options = WebhookServerOptions::new((Ipv4Addr::LOCALHOST, 0).into(), certificates);
    let server = Arc::new(WebhookServer::listen(options).await.unwrap());
    let (shutdown, stop) = (CancellationToken::new(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    let (serving, started, stopped) = (server.clone(), shutdown.clone(), stop.clone());
    assert_eq!(server.health().check(), Err(WebhookUnhealthy::Starting));
    let mut phase = server.phase.subscribe();
    tasks.spawn(async move {
        let router = Arc::new(one(webhook));
        let started = async move { started.cancelled().await };
        serving.serve(router, started, stopped).await.unwrap();
    });
    phase
        .wait_for(|phase| *phase == Phase::Serving)
        .await
        .unwrap();
    Running {
        server,
        shutdown,
        stop,
        tasks,
    }
}

/// Connects with TLS, trusting one certificate.
async fn connect(
    running: &mut Running,
    trusted: &CertificateDer<'static>,
) -> Result<SendRequest<Full<Bytes>>, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(running.server.address()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    running.tasks.spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn request() -> Request<Full<Bytes>> {
    let body = review("CREATE", config_map(json!({})), json!(null)).to_string();
    Request::post(VALIDATE)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

async fn is_allowed(response: Response<Incoming>) -> bool {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    review["response"]["allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn webhooks_are_served_with_the_last_certificate() {
    let (sender, certificates) = CertificateSource::channel();
    let webhook = Webhook::new().validating(|_: &ConfigMap, _| Admission::allowed());
    let mut running = start(webhook, certificates).await;
    let health = running.server.health();
    let (first, key) = certificate();
    // Fails closed without a certificate.
    assert_eq!(health.check(), Err(WebhookUnhealthy::NoCertificate));
    connect(&mut running, &first).await.unwrap_err();

    sender.send_replace(Some(Arc::new(key)));
    assert_eq!(health.check(), Ok(()));
    let mut old = connect(&mut running, &first).await.unwrap();
    assert!(is_allowed(old.send_request(request()).await.unwrap()).await);

    let (second, key) = certificate();
    sender.send_replace(Some(Arc::new(key)));
    connect(&mut running, &first).await.unwrap_err();
    let mut new = connect(&mut running, &second).await.unwrap();
    assert!(is_allowed(new.send_request(request()).await.unwrap()).await);
    // Open connections stay.
    assert!(is_allowed(old.send_request(request()).await.unwrap()).await);
}

/// Returns a webhook whose function waits for a permit, and the number of its calls.
fn waiting() -> (Webhook<ConfigMap>, Arc<Semaphore>, Arc<AtomicUsize>) {
    let (permits, calls) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (given, counted) = (permits.clone(), calls.clone());
    let webhook =
        Webhook::new().validating_with(move |_: AdmissionRequest<ConfigMap>, _: WebhookContext| {
            let permits = given.clone();
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok::<_, Error>(Admission::allowed())
            }
        });
    (webhook, permits, calls)
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_accepts_for_five_seconds_and_completes_all_requests() {
    let (webhook, permits, calls) = waiting();
    let (trusted, key) = certificate();
    let mut running = start(webhook, CertificateSource::fixed(key)).await;
    let mut early = connect(&mut running, &trusted).await.unwrap();
    let mut early_response = JoinSet::new();
    early_response.spawn(early.send_request(request()));
    while calls.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let started = tokio::time::Instant::now();
    running.shutdown.cancel();
    tokio::task::yield_now().await;
    let health = running.server.health();
    assert_eq!(health.check(), Err(WebhookUnhealthy::Stopping));
    // A request that arrives after the shutdown began is served, and its connection closed.
    running.stop.cancel();
    permits.add_permits(2);
    let mut late = connect(&mut running, &trusted).await.unwrap();
    let response = late.send_request(request()).await.unwrap();
    assert_eq!(response.headers()["connection"], "close");
    assert!(is_allowed(response).await);
    assert!(is_allowed(early_response.join_next().await.unwrap().unwrap().unwrap()).await);
    while running.tasks.join_next().await.is_some() {}
    assert!(
        started.elapsed() >= SHUTDOWN_DELAY,
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_certificate_that_cannot_be_used_is_an_error() {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (generated.cert.pem(), other.signing_key.serialize_pem());
    for (chain, key) in [("", key.as_str()), (chain.as_str(), ""), (&chain, &key)] {
        let error = CertificateSource::key_from_pem(chain.as_bytes(), key.as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("cannot use the serving certificate: "),
            "{error}"
        );
    }
}
