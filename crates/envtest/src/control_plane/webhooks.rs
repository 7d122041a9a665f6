//! Webhooks of the operators that a test starts.
//!
//! The embedded server calls them in this process, without sockets and certificates. Real
//! Kubernetes calls them over HTTPS on a loopback port, with a certificate of an authority that is
//! created for the test, or with the operator's own certificate. A cluster cannot reach this
//! process, so such tests are skipped there.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_apiserver::LocalService;
use opkit_client::{DeleteOptions, Kind, ObjectKey, Patch, WriteOptions};
use opkit_controller::Result;
use opkit_operator::{Operator, RunOptions, ServerAddresses, WebhookManifests};
use opkit_webhook::{CertificateSource, WebhookRouter};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{ControlPlane, MANAGER};
use crate::backend::Backend;
use crate::error::{TestError, refused};

/// Label of the objects with which a test finds out whether its webhooks are in force.
const PROBE_LABEL: &str = "opkit.dev/webhook-probe";
/// Time that a request to a webhook in this process waits until the operator serves it.
const SERVED_MAX: Duration = Duration::from_secs(10);

/// Webhooks of an operator that is about to start.
pub(super) struct TestWebhooks {
    manifests: WebhookManifests,
    /// CRDs whose objects the operator converts.
    converted: Vec<CustomResourceDefinition>,
    addresses: watch::Receiver<ServerAddresses>,
    calls: Calls,
}

/// How the API server calls webhooks.
enum Calls {
    InProcess,
    /// Over HTTPS. The authority of the server is in PEM; the operator itself writes the
    /// `caBundle` if there is none.
    Https {
        authority: Option<String>,
    },
}

impl ControlPlane {
    /// Prepares the options of an operator whose webhooks this control plane calls. Returns `None`
    /// if the operator has no webhook.
    pub(super) fn prepare_webhooks(
        &self,
        operator: &Operator,
        options: &mut RunOptions,
    ) -> Result<Option<TestWebhooks>, TestError> {
        if self.inner.backend.is_shared() {
            let prefix = format!("{}-{}", operator.name(), self.namespace());
            options.webhook_configuration_prefix = Some(prefix);
        }
        let Some(manifests) = operator.webhook_manifests(options) else {
            return Ok(None);
        };
        // A service that stops late would keep the test waiting.
        options.webhook_shutdown_delay = Duration::ZERO;
        let mut webhooks = TestWebhooks {
            manifests,
            converted: operator.crds().into_iter().filter(is_converted).collect(),
            addresses: options.servers.subscribe(),
            calls: Calls::InProcess,
        };
        if !matches!(self.inner.backend, Backend::Cluster) && self.use_own_certificates(options) {
            webhooks.calls = Calls::Https { authority: None };
            return Ok(Some(webhooks));
        }
        match &self.inner.backend {
            Backend::Embedded(server) => {
                let service = InProcess(options.webhook_router.subscribe());
                let manifests = &webhooks.manifests;
                let (namespace, name) = (manifests.namespace(), manifests.service_name());
                server.serve_service(namespace, &name, Some(Arc::new(service)));
            }
            Backend::Binaries(_) => {
                let (authority, key) =
                    certificate().map_err(|cause| TestError::Client { cause })?;
                options.webhook_bind_address = Some((Ipv4Addr::LOCALHOST, 0).into());
                options.webhook_certificates = Some(key);
                webhooks.calls = Calls::Https {
                    authority: Some(authority),
                };
            }
            Backend::Cluster => {
                return Err(TestError::Skipped {
                    reason: "the cluster cannot reach the webhooks of a test".to_owned(),
                });
            }
        }
        Ok(Some(webhooks))
    }

    /// Sets the address of the conversion webhook in the CRDs, once the operator listens. The
    /// caches of the operator may wait for it. `ready` ends the wait if the operator stops.
    pub(super) async fn register_conversion(
        &self,
        webhooks: &TestWebhooks,
        ready: &mut watch::Receiver<bool>,
    ) -> Result {
        let Calls::Https { authority } = &webhooks.calls else {
            return Ok(());
        };
        if webhooks.converted.is_empty() {
            return Ok(());
        }
        let mut addresses = webhooks.addresses.clone();
        let address = tokio::select! {
            listening = addresses.wait_for(|it| it.webhook.is_some()) => {
                listening.ok().and_then(|it| it.webhook)
            }
            _ = ready.wait_for(|ready| *ready) => webhooks.addresses.borrow().webhook,
        };
        let Some(address) = address else {
            return self.check_operators();
        };
        for crd in &webhooks.converted {
            let mut crd = crd.clone();
            let conversion = crd.spec.conversion.as_mut();
            let webhook = conversion.and_then(|conversion| conversion.webhook.as_mut());
            if let Some(config) = webhook.and_then(|webhook| webhook.client_config.as_mut()) {
                let path = config.service.take().and_then(|service| service.path);
                config.url = Some(format!("https://{address}{}", path.unwrap_or_default()));
                let authority = authority.clone().map(String::into_bytes);
                config.ca_bundle = authority.map(k8s_openapi::ByteString);
            }
            self.apply_converted(crd, &address.to_string()).await?;
        }
        Ok(())
    }

    /// Registers the webhooks of a running operator, and waits until they are in force.
    pub(super) async fn register_webhooks(&self, webhooks: TestWebhooks) -> Result {
        let address = webhooks.addresses.borrow().webhook;
        for mut configuration in webhooks.manifests.configurations() {
            if let (Calls::Https { authority }, Some(address)) = (&webhooks.calls, address) {
                self.adapt(&mut configuration, address, authority.as_deref());
            }
            self.apply_configuration(&configuration).await?;
            if let Calls::Https { authority: None } = webhooks.calls {
                self.wait_for_bundle(&configuration).await?;
            }
            if self.inner.backend.is_shared() {
                self.wait_until_called(&configuration).await?;
            }
        }
        Ok(())
    }

    /// Changes a webhook configuration for a server that other tests use too: its webhooks are
    /// called at an address on this machine, and only for the namespace of this test. A further
    /// webhook shows whether the server has read the configuration.
    fn adapt(&self, configuration: &mut Value, address: SocketAddr, authority: Option<&str>) {
        let namespace = self.namespace();
        // The value of a label is shorter than a name.
        let probed = text(configuration, "/metadata/name").replace(&format!("-{namespace}"), "");
        let Some(webhooks) = configuration
            .get_mut("webhooks")
            .and_then(Value::as_array_mut)
        else {
            return;
        };
        let config = |path: &str| {
            let mut config = json!({"url": format!("https://{address}{path}")});
            if let (Some(authority), Some(config)) = (authority, config.as_object_mut()) {
                config.insert("caBundle".to_owned(), base64(authority.as_bytes()));
            }
            config
        };
        for webhook in &mut *webhooks {
            let path = text(webhook, "/clientConfig/service/path");
            let own = json!({
                "key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace],
            });
            let selectors = webhook.pointer("/namespaceSelector/matchExpressions");
            let mut selectors = selectors
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            selectors.push(own);
            if let Some(webhook) = webhook.as_object_mut() {
                webhook.insert("clientConfig".to_owned(), config(&path));
                let selector = webhook
                    .entry("namespaceSelector")
                    .or_insert_with(|| json!({}));
                if let Some(selector) = selector.as_object_mut() {
                    selector.insert("matchExpressions".to_owned(), selectors.into());
                }
            }
        }
        webhooks.push(json!({
            "name": "probe.opkit.dev.test", "admissionReviewVersions": ["v1"],
            "clientConfig": config("/probe"), "sideEffects": "None",
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"],
            }],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "objectSelector": {"matchLabels": {PROBE_LABEL: probed}},
        }));
    }

    async fn apply_configuration(&self, configuration: &Value) -> Result<(), TestError> {
        let kind = kind_of(configuration);
        let name = text(configuration, "/metadata/name");
        let (key, client) = (ObjectKey::from(name.as_str()), &self.inner.client);
        if self.inner.backend.is_shared() {
            let mut registered = self.inner.webhook_configurations.lock();
            registered.push((kind.clone(), name.clone()));
        }
        let options = WriteOptions::for_manager(MANAGER).force();
        let body = Patch::Apply(configuration);
        let applied = client.patch(&kind, &key, None, body, &options).await;
        applied
            .map(drop)
            .map_err(|cause| refused(format!("apply {} {key}", kind.kind), cause))
    }

    /// Waits until the server calls the webhooks of a configuration, which it reads with a delay. A
    /// dry run that only the probe of the configuration matches fails from then on, because there
    /// is nothing at its path.
    async fn wait_until_called(&self, configuration: &Value) -> Result {
        let name = text(configuration, "/webhooks/0/name");
        let label = (configuration.get("webhooks").and_then(Value::as_array))
            .and_then(|all| all.last())
            .and_then(|probe| probe.pointer("/objectSelector/matchLabels"))
            .cloned();
        let probe = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "opkit-webhook-probe", "labels": label},
        });
        let kind = Kind::of::<ConfigMap>();
        let (client, namespace) = (&self.inner.client, self.namespace());
        let mut options = WriteOptions::for_manager(MANAGER);
        options.dry_run = true;
        let called = self
            .wait(async || {
                let created = client
                    .create(&kind, Some(namespace), &probe, &options)
                    .await;
                let is_called = created.is_err_and(|error| {
                    let error = opkit_client::one_line(&error);
                    // A certificate that the server does not trust yet is an x509 error in Go.
                    error.contains("probe.opkit.dev.test") && !error.contains("x509")
                });
                Ok(is_called.then_some(()))
            })
            .await?;
        match called {
            Some(()) => Ok(()),
            None => Err(TestError::WebhookNotCalled {
                name,
                timeout: self.timeout,
            }
            .into()),
        }
    }

    /// Deletes the webhook configurations of this test from a shared control plane.
    pub(super) async fn remove_webhooks(&self) -> Result<(), TestError> {
        let registered = std::mem::take(&mut *self.inner.webhook_configurations.lock());
        for (kind, name) in registered {
            let (key, options) = (ObjectKey::from(name.as_str()), DeleteOptions::background());
            match self.inner.client.delete(&kind, &key, &options).await {
                Err(error) if error.is_not_found() => {}
                deleted => {
                    let what = || format!("delete {} {name}", kind.kind);
                    deleted.map_err(|cause| refused(what(), cause))?;
                }
            }
        }
        Ok(())
    }
}

/// Webhooks of an operator in this process, as a Service of the embedded server.
struct InProcess(watch::Receiver<Option<Arc<WebhookRouter>>>);

impl LocalService for InProcess {
    fn call(
        &self,
        request: Request<Bytes>,
    ) -> futures::future::BoxFuture<'static, Response<Bytes>> {
        let mut router = self.0.clone();
        async move {
            let served = async {
                let served = router.wait_for(Option::is_some).await.ok()?;
                served.clone()
            };
            match tokio::time::timeout(SERVED_MAX, served).await {
                Ok(Some(router)) => router.respond(request).await,
                _ => {
                    let mut response =
                        Response::new(Bytes::from_static(b"the operator has stopped\n"));
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    response
                }
            }
        }
        .boxed()
    }
}

/// Creates a certificate authority and a serving certificate for 127.0.0.1. Returns the authority
/// in PEM.
pub(super) fn certificate() -> Result<(String, CertificateSource), String> {
    let create = || -> Result<_, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate()?;
        let authority = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok((authority, certificate.pem(), key.serialize_pem()))
    };
    let (authority, certificate, key) = create().map_err(|error| error.to_string())?;
    let key = CertificateSource::key_from_pem(certificate.as_bytes(), key.as_bytes());
    let key = key.map_err(|error| error.to_string())?;
    Ok((authority, CertificateSource::fixed(key)))
}

/// Reports whether a webhook converts the objects of a CRD.
pub(super) fn is_converted(crd: &CustomResourceDefinition) -> bool {
    let conversion = crd.spec.conversion.as_ref();
    conversion.is_some_and(|conversion| conversion.strategy == "Webhook")
}

pub(super) fn kind_of(configuration: &Value) -> Kind {
    match configuration.get("kind").and_then(Value::as_str) {
        Some("MutatingWebhookConfiguration") => Kind::of::<MutatingWebhookConfiguration>(),
        _ => Kind::of::<ValidatingWebhookConfiguration>(),
    }
}

pub(super) fn text(value: &Value, pointer: &str) -> String {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Encodes bytes as JSON encodes a `caBundle`.
fn base64(bytes: &[u8]) -> Value {
    json!(k8s_openapi::ByteString(bytes.to_owned()))
}
