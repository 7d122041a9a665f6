//! The operator's own certificate authority: the Secret that replicas share, and the `caBundle`.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use opkit::prelude::*;
use opkit_certificates::{BundleTarget, CertificateKeeper, KeeperOptions, Periods, TargetKind};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::waiting::until;

const SECRET: &str = "shop-operator-webhook-certificates";

/// A replica of an operator that serves webhooks.
struct Replica {
    certificate: watch::Receiver<Option<Arc<CertifiedKey>>>,
    health: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Replica {
    fn start(plane: &ControlPlane, operator: &str, replica: &str) -> Self {
        let (certificates, certificate) = watch::channel(None);
        let target = BundleTarget {
            kind: TargetKind::Validating,
            name: plane.namespace().to_owned(),
        };
        let options = KeeperOptions {
            operator: operator.to_owned(),
            namespace: plane.namespace().to_owned(),
            secret: SECRET.to_owned(),
            replica: replica.to_owned(),
            names: vec![format!("shop-webhook.{}.svc", plane.namespace())],
            targets: vec![target],
            // For this time after its creation, an authority keeps others beside it in the bundle.
            periods: Periods {
                propagation: Duration::from_secs(1),
                ..Periods::default()
            },
        };
        let client = opkit::client::RestClient::new(plane.client());
        let keeper = CertificateKeeper::new(client, options, certificates);
        let health = Box::new(keeper.health());
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.run(stop.clone()));
        Self {
            certificate,
            health,
            stop,
            tasks,
        }
    }

    /// Waits for the certificate that the replica serves.
    async fn certificate(&mut self) -> Arc<CertifiedKey> {
        let certificate = self.certificate.wait_for(Option::is_some).await;
        certificate.unwrap().clone().unwrap()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.join_all().await;
    }
}

fn configuration(name: &str, bundle: Option<&str>) -> Value {
    let webhook = |webhook: &str| {
        let mut client = json!({"service": {"name": "shop-webhook", "namespace": name}});
        if let Some(bundle) = bundle {
            client["caBundle"] = json!(STANDARD.encode(bundle));
        }
        json!({
            "name": webhook,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": client,
            "rules": [{
                "apiGroups": ["shop.opkit.dev"], "apiVersions": ["v1"],
                "resources": ["shops"], "operations": ["CREATE"],
            }],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook("a.shop.opkit.dev"), webhook("b.shop.opkit.dev")],
    })
}

fn bundles(configuration: &ValidatingWebhookConfiguration) -> Vec<Option<String>> {
    let webhooks = configuration.webhooks.iter().flatten();
    webhooks
        .map(|webhook| {
            let bundle = webhook.client_config.ca_bundle.as_ref()?;
            String::from_utf8(bundle.0.clone()).ok()
        })
        .collect()
}

fn authorities(secret: &Secret) -> Option<String> {
    let data = secret.data.as_ref()?;
    String::from_utf8(data.get("ca.crt")?.0.clone()).ok()
}

#[opkit::test]
async fn replicas_share_certificates_and_keep_the_bundle(plane: ControlPlane) -> opkit::Result {
    let name = plane.namespace().to_owned();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(plane.client());
    let object = serde_json::from_value(configuration(&name, None))?;
    configurations
        .create(&PostParams::default(), &object)
        .await?;
    let mut first = Replica::start(&plane, "shop-operator", "pod-1");
    let mut second = Replica::start(&plane, "shop-operator", "pod-2");
    let served = first.certificate().await;
    assert_eq!(served.cert, second.certificate().await.cert);
    let secret = plane
        .eventually(SECRET, |secret: &Secret| authorities(secret).is_some())
        .await?;
    let authority = authorities(&secret).unwrap();
    let has_bundle = |configuration: &ValidatingWebhookConfiguration| {
        let all = bundles(configuration);
        all.len() == 2 && all.iter().all(|bundle| bundle.as_ref() == Some(&authority))
    };
    plane.eventually(name.as_str(), has_bundle).await?;
    assert_eq!((first.health)(), Ok(()));

    // An edit by hand is undone.
    let other = rcgen::generate_simple_self_signed(["other".to_owned()])?;
    let edited = serde_json::from_value(configuration(&name, Some(&other.cert.pem())))?;
    let edit = PatchParams::default();
    let edited: ValidatingWebhookConfiguration = edited;
    configurations
        .patch(&name, &edit, &Patch::Merge(&edited))
        .await?;
    plane.eventually(name.as_str(), has_bundle).await?;

    // An apply of the manifest leaves the bundle.
    let apply = PatchParams::apply("gitops").force();
    let manifest = Patch::Apply(configuration(&name, None));
    let applied = configurations.patch(&name, &apply, &manifest).await?;
    assert!(has_bundle(&applied), "{applied:?}");

    // A deleted Secret is restored with the same authority.
    let secrets: Api<Secret> = Api::namespaced(plane.client(), &name);
    let uid = secret.metadata.uid.clone();
    secrets.delete(SECRET, &DeleteParams::default()).await?;
    let is_restored = |secret: &Secret| {
        secret.metadata.uid != uid && authorities(secret).as_ref() == Some(&authority)
    };
    plane.eventually(SECRET, is_restored).await?;

    // Another operator does not touch the Secret, and reports why it has no certificate.
    let foreign = Replica::start(&plane, "robot-operator", "pod-3");
    let refusal = || (foreign.health)().err().unwrap_or_default();
    until("the Secret of another operator is reported", async || {
        refusal().contains("holds the webhook certificates")
    })
    .await;
    let reason = refusal();
    assert!(
        reason.contains("of shop-operator, not of robot-operator"),
        "{reason}"
    );
    foreign.stop().await;

    // The report of a stopped replica goes at once.
    second.stop().await;
    let reports = |secret: &Secret| {
        let data = secret.data.as_ref()?;
        let reports: Value = serde_json::from_slice(&data.get("replicas.json")?.0).ok()?;
        Some(reports.as_object()?.keys().cloned().collect::<Vec<_>>())
    };
    let is_alone = |secret: &Secret| reports(secret) == Some(vec!["pod-1".to_owned()]);
    plane.eventually(SECRET, is_alone).await?;
    assert_eq!(first.certificate().await.cert, served.cert);
    first.stop().await;
    configurations
        .delete(&name, &DeleteParams::default())
        .await?;
    Ok(())
}
