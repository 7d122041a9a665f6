//! Two replicas behind a TCP forwarder, which distributes connections as a Service does: one of
//! them stops under load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use opkit::operator::{CancellationToken, RunOptions};
use opkit::prelude::*;
use opkit::webhook::CertificateSource;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, interval, sleep};

use crate::waiting::until;

/// Requests in a second to a real server.
const RATE: u32 = 200;
/// Requests in a second if the server, the replicas and the forwarder are one process: while a
/// replica stops, each request needs a TLS handshake.
const RATE_IN_PROCESS: u32 = 50;
/// Time between the start of a shutdown and the moment at which a replica accepts no connections.
const SHUTDOWN_DELAY: Duration = Duration::from_secs(2);
/// Time until the forwarder learns that a replica is not ready, as endpoints lag in a cluster.
const ENDPOINTS_LAG: Duration = Duration::from_millis(700);

fn operator() -> Operator {
    let webhook = Webhook::new().validating(|map: &ConfigMap, _| {
        let name = map.metadata.name.as_deref().unwrap_or_default();
        Admission::allowed_if(name != "probe", "it is called")
    });
    Operator::new("map-operator").webhook(webhook)
}

/// Replica of the operator.
struct Replica {
    address: SocketAddr,
    stop: CancellationToken,
    task: AbortHandle,
}

/// Forwards connections to the backends in turn. A backend that accepts no connection is skipped.
#[derive(Default)]
struct Forwarder {
    backends: Mutex<Vec<SocketAddr>>,
    turn: AtomicUsize,
    /// Open connections by backend.
    open: Mutex<Vec<SocketAddr>>,
}

impl Forwarder {
    async fn run(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok((client, _)) = listener.accept() => {
                    connections.spawn(self.clone().forward(client));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn forward(self: Arc<Self>, mut client: TcpStream) {
        let mut backends = self.backends.lock().clone();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % backends.len();
        backends.rotate_left(first);
        for backend in backends {
            let Ok(mut server) = TcpStream::connect(backend).await else {
                continue;
            };
            self.open.lock().push(backend);
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            let mut open = self.open.lock();
            let index = open.iter().position(|it| *it == backend).unwrap();
            open.swap_remove(index);
            return;
        }
    }

    fn open_to(&self, backend: SocketAddr) -> usize {
        self.open.lock().iter().filter(|it| **it == backend).count()
    }
}

/// Returns a certificate for 127.0.0.1, and its authority in PEM.
fn certificate() -> (Vec<u8>, CertificateSource) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let key = key.serialize_pem();
    let key = CertificateSource::key_from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    (authority.into_bytes(), CertificateSource::fixed(key))
}

async fn start(
    plane: &ControlPlane,
    certificates: &CertificateSource,
    tasks: &mut JoinSet<()>,
) -> Replica {
    let mut options = RunOptions::default();
    options.webhook_bind_address = Some(([127, 0, 0, 1], 0).into());
    options.webhook_certificates = Some(certificates.clone());
    options.webhook_shutdown_delay = SHUTDOWN_DELAY;
    options.preflight = false;
    let (mut ready, addresses) = (options.ready.subscribe(), options.servers.subscribe());
    let (client, stop) = (plane.client(), CancellationToken::new());
    let stopped = stop.clone();
    let task = tasks.spawn(async move {
        operator().run_with(client, options, stopped).await.unwrap();
    });
    ready.wait_for(|ready| *ready).await.unwrap();
    let address = addresses.borrow().webhook.unwrap();
    Replica {
        address,
        stop,
        task,
    }
}

/// Returns a dry run that the webhook decides about.
async fn admit(maps: &Api<ConfigMap>, name: &str) -> Result<(), String> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let created = maps.create(&params, &map).await;
    created.map(drop).map_err(|error| error.to_string())
}

/// Sends requests at a constant rate for `time`, and returns their errors.
async fn load(maps: &Api<ConfigMap>, rate: u32, time: Duration) -> Vec<String> {
    let (mut requests, mut failed) = (JoinSet::new(), Vec::new());
    let mut ticks = interval(Duration::from_secs(1) / rate);
    let end = Instant::now() + time;
    while Instant::now() < end {
        ticks.tick().await;
        let maps = maps.clone();
        requests.spawn(async move { admit(&maps, "any").await });
        while let Some(sent) = requests.try_join_next() {
            failed.extend(sent.unwrap().err());
        }
    }
    while let Some(sent) = requests.join_next().await {
        failed.extend(sent.unwrap().err());
    }
    failed
}

/// Registers the webhook at the forwarder's address, for the namespace of the test.
async fn register(
    plane: &ControlPlane,
    address: SocketAddr,
    authority: Vec<u8>,
) -> opkit::Result<Api<ValidatingWebhookConfiguration>> {
    let manifests = operator()
        .webhook_manifests(&RunOptions::default())
        .unwrap();
    let mut configuration: Value = manifests.configurations().remove(0);
    configuration["metadata"] = json!({"name": plane.namespace()});
    let webhook = &mut configuration["webhooks"][0];
    let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
    let url = format!("https://{address}{path}");
    webhook["clientConfig"] = json!({"url": url, "caBundle": ByteString(authority)});
    webhook["namespaceSelector"] =
        json!({"matchLabels": {"kubernetes.io/metadata.name": plane.namespace()}});
    let api: Api<ValidatingWebhookConfiguration> = Api::all(plane.client());
    let configuration = serde_json::from_value(configuration)?;
    api.create(&PostParams::default(), &configuration).await?;
    Ok(api)
}

#[opkit::test]
async fn a_replica_that_stops_loses_no_request(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::LocalServers)?;
    let rate = match plane.require(Capability::OwnServer) {
        Ok(()) => RATE_IN_PROCESS,
        Err(_) => RATE,
    };
    let (authority, certificates) = certificate();
    let mut tasks = JoinSet::new();
    let forwarder = Arc::new(Forwarder::default());
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(start(&plane, &certificates, &mut tasks).await);
    }
    let [first, second, third] = replicas.try_into().ok().unwrap();
    *forwarder.backends.lock() = vec![first.address, second.address];
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tasks.spawn(forwarder.clone().run(listener));
    let api = register(&plane, address, authority).await?;
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(), plane.namespace());
    // A real server reads the configuration with a delay.
    let is_called = async || {
        let refused = admit(&maps, "probe").await;
        refused.is_err_and(|error| error.contains("it is called"))
    };
    until("the webhook is called", is_called).await;

    // As SIGTERM: the replica is not ready at once, and the forwarder learns it later.
    let stopping = async {
        sleep(Duration::from_millis(500)).await;
        assert!(forwarder.open_to(first.address) > 0);
        first.stop.cancel();
        sleep(ENDPOINTS_LAG).await;
        *forwarder.backends.lock() = vec![second.address, third.address];
    };
    let (failed, ()) = tokio::join!(load(&maps, rate, SHUTDOWN_DELAY * 2), stopping);
    assert_eq!(failed, [""; 0], "SIGTERM");
    // A connection without a request is closed last.
    while forwarder.open_to(first.address) > 0 {
        sleep(Duration::from_millis(20)).await;
    }

    // As SIGKILL: everything ends at once, and the forwarder finds no listener.
    let killing = async {
        sleep(Duration::from_millis(500)).await;
        let open = forwarder.open_to(second.address);
        second.task.abort();
        open
    };
    let (failed, open) = tokio::join!(load(&maps, rate, Duration::from_secs(2)), killing);
    assert!(
        failed.len() <= open,
        "{} of {open}: {failed:?}",
        failed.len()
    );
    api.delete(plane.namespace(), &DeleteParams::default())
        .await?;
    third.stop.cancel();
    tasks.shutdown().await;
    Ok(())
}
