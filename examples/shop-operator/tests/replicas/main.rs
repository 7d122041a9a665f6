//! Replicas of the operator, each a process, behind a forwarder of TCP connections: one of them is
//! stopped or killed while the API server asks their webhooks.
//!
//! The replicas make their certificate themselves and share it in a Secret, as in a cluster.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may unwrap"
)]

mod forwarder;
mod process;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use opkit::k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use opkit::k8s_openapi::api::core::v1::Namespace;
use opkit::kube::Api;
use opkit::kube::api::{DeleteParams, PostParams};
use opkit::operator::RunOptions;
use opkit::prelude::*;
use opkit::serde_json::{self, Value, json};
use opkit::testing::{Capability, TestError};
use shop_operator::{Shop, ShopSpec, operator};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

use self::forwarder::Forwarder;
use self::process::Process;

/// Requests in a second.
const RATE: u32 = 200;
/// Time until the forwarder learns that a replica is not ready, as endpoints lag in a cluster.
const ENDPOINTS_LAG: Duration = Duration::from_secs(1);
/// Time in which a replica that got SIGTERM ends: 5 s in which it still accepts connections, and
/// the rest for connections that are open.
const STOP_MAX: Duration = Duration::from_secs(15);

fn shop(name: &str) -> Shop {
    let spec = ShopSpec {
        image: "nginx:1.27".into(),
        replicas: 1,
        sale: false,
        config_map: "settings".into(),
        database: None,
        host: None,
    };
    Shop::new(name, spec)
}

/// Returns a dry run that the webhook decides about.
async fn admit(shops: &Api<Shop>) -> Result<(), String> {
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let created = shops.create(&params, &shop("any")).await;
    created.map(drop).map_err(|error| error.to_string())
}

/// Sends requests at a constant rate until `end` completes. Returns the number of requests, their
/// errors, and the output of `end`.
async fn load<T>(shops: &Api<Shop>, end: impl Future<Output = T>) -> (usize, Vec<String>, T) {
    let (mut requests, mut failed, mut sent) = (JoinSet::new(), Vec::new(), 0);
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    let mut end = std::pin::pin!(end);
    let output = loop {
        tokio::select! {
            output = end.as_mut() => break output,
            _ = ticks.tick() => {}
        }
        let shops = shops.clone();
        requests.spawn(async move { admit(&shops).await });
        sent += 1;
        while let Some(ended) = requests.try_join_next() {
            failed.extend(ended.unwrap().err());
        }
    };
    while let Some(ended) = requests.join_next().await {
        failed.extend(ended.unwrap().err());
    }
    (sent, failed, output)
}

/// Returns the validating configuration of the operator, which the API server calls at an address.
fn configuration(plane: &ControlPlane, prefix: &str, address: SocketAddr) -> Value {
    let mut options = RunOptions::default();
    options.webhook_configuration_prefix = Some(prefix.to_owned());
    let manifests = operator().webhook_manifests(&options).unwrap();
    let mut configurations = manifests.configurations().into_iter();
    let is_validating = |it: &Value| it["kind"] == "ValidatingWebhookConfiguration";
    let mut configuration = configurations.find(is_validating).unwrap();
    for webhook in configuration["webhooks"].as_array_mut().unwrap() {
        let path = webhook["clientConfig"]["service"]["path"].as_str();
        let url = format!("https://{address}{}", path.unwrap());
        webhook["clientConfig"] = json!({"url": url});
        let own = json!({"matchLabels": {"kubernetes.io/metadata.name": plane.namespace()}});
        webhook["namespaceSelector"] = own;
    }
    configuration
}

/// What all replicas of a test have in common.
struct Replicas<'a> {
    kubeconfig: &'a Path,
    prefix: &'a str,
    namespace: &'a str,
}

impl Replicas<'_> {
    /// Starts a replica and waits until it is ready.
    async fn start(&self, name: &str) -> Process {
        let replica = Process::start(name, |command| {
            command.arg("--kubeconfig").arg(self.kubeconfig);
            command.args(["--namespace", self.namespace, "--leader-elect=false"]);
            command.args(["--webhook-host", "127.0.0.1"]);
            command.args(["--webhook-configuration-prefix", self.prefix]);
        });
        timeout(Duration::from_secs(60), replica.wait_until_ready())
            .await
            .unwrap_or_else(|_| panic!("{name} is not ready"));
        replica
    }
}

#[opkit::test]
async fn a_replica_that_ends_loses_no_request(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::LocalServers)?;
    if cfg!(not(unix)) {
        let reason = "it needs signals".to_owned();
        return Err(TestError::Skipped { reason }.into());
    }
    let directory = TempDir::new()?;
    let kubeconfig = directory.path().join("kubeconfig");
    fs::write(
        &kubeconfig,
        plane.listen((Ipv4Addr::LOCALHOST, 0).into()).await?,
    )?;
    plane.install(&operator()).await?;
    // The Secret with the certificates is in the namespace of the manifests.
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("shop-operator-system".to_owned());
    plane.apply(namespace).await?;

    let forwarder = Arc::new(Forwarder::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let prefix = format!("shop-operator-{}", plane.namespace());
    let configuration = configuration(&plane, &prefix, listener.local_addr()?);
    let mut tasks = JoinSet::new();
    tasks.spawn(forwarder.clone().run(listener));
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(plane.client());
    configurations
        .create(
            &PostParams::default(),
            &serde_json::from_value(configuration)?,
        )
        .await?;
    let replicas = Replicas {
        kubeconfig: &kubeconfig,
        prefix: &prefix,
        namespace: plane.namespace(),
    };
    let first = replicas.start("first").await;
    let second = replicas.start("second").await;
    forwarder.set([first.address(), second.address()]);
    let shops: Api<Shop> = Api::namespaced(plane.client(), plane.namespace());
    // The server reads the configuration, with the `caBundle` of the replicas, with a delay.
    let end = Instant::now() + Duration::from_secs(30);
    let is_called = || forwarder.open_to(first.address()) + forwarder.open_to(second.address()) > 0;
    loop {
        match admit(&shops).await {
            Ok(()) if is_called() => break,
            admitted => assert!(Instant::now() < end, "it is not called: {admitted:?}"),
        }
        sleep(Duration::from_millis(20)).await;
    }

    let stopping = async {
        while forwarder.open_to(first.address()) == 0 {
            sleep(Duration::from_millis(10)).await;
        }
        sleep(Duration::from_secs(1)).await;
        first.terminate();
        sleep(ENDPOINTS_LAG).await;
        forwarder.set([second.address()]);
        let code = timeout(STOP_MAX, first.wait()).await;
        assert_eq!(code, Ok(Some(0)), "the exit code after SIGTERM");
        sleep(Duration::from_millis(500)).await;
    };
    let (sent, failed, ()) = load(&shops, stopping).await;
    assert_eq!(failed, [""; 0], "SIGTERM, of {sent} requests");

    let third = replicas.start("third").await;
    forwarder.set([second.address(), third.address()]);
    let killing = async {
        sleep(Duration::from_secs(1)).await;
        let open = forwarder.open_to(second.address());
        assert!(open > 0);
        second.kill();
        sleep(Duration::from_secs(2)).await;
        open
    };
    let (sent, failed, open) = load(&shops, killing).await;
    assert!(
        failed.len() <= open,
        "{} of {sent} requests failed, with {open} open connections: {failed:?}",
        failed.len()
    );
    assert!(forwarder.open_to(third.address()) > 0);
    let name = format!("{prefix}-validating-webhook-configuration");
    configurations
        .delete(&name, &DeleteParams::default())
        .await?;
    tasks.shutdown().await;
    Ok(())
}
