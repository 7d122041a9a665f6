//! Webhooks and admission policies of an operator.
//!
//! Everything that serves or prints webhooks is called through [`Functions`], which the first
//! webhook sets. The linker therefore leaves it out of an operator without webhooks.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::TokenReviewSpec;
use k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec;
use opkit_controller::{AnyRunnable, Error, ReadDeclarations, Result, RunContext};
use opkit_manifests::{MutatingPolicy, ValidatingPolicy, WebhookManifests};
use opkit_webhook::{
    AnyWebhook, Authentication, AuthenticationWebhook, Authorization, AuthorizationWebhook,
    CertificateSource, ConversionWebhook, WebhookContext, WebhookHealth, WebhookRouter,
    WebhookServer, WebhookServerOptions, WebhookSet,
};
use serde_json::Value;
use tokio::sync::watch;

use super::{Operator, RunOptions};
use crate::OperatorError;

/// Directory of the certificate that cert-manager issues, where kubebuilder's deployments mount it.
const CERT_MANAGER_PATH: &str = "/tmp/k8s-webhook-server/serving-certs";
/// Port of the Service's target if the options do not set one.
pub(crate) const WEBHOOK_PORT: u16 = 9443;

/// Where the serving certificate of the webhooks comes from. The flag `--webhook-cert-path` always
/// selects files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WebhookCertificates {
    /// The operator creates and renews its own certificate authority and certificate.
    #[default]
    Own,
    /// cert-manager issues the certificate: `manifests` prints its objects, and the operator reads
    /// the certificate from files.
    CertManager,
}

/// Webhooks and policies of an operator.
#[derive(Default)]
pub(super) struct Webhooks {
    pub(super) set: WebhookSet,
    pub(super) certificates: WebhookCertificates,
    /// Manifests of the policies and their bindings.
    pub(super) policies: Vec<Value>,
    functions: Option<&'static Functions>,
}

/// Functions for webhooks, which an operator without webhooks does not contain.
struct Functions {
    check: fn(&WebhookSet) -> Result<(), String>,
    reads: fn(&WebhookSet) -> ReadDeclarations,
    manifests: fn(&WebhookSet, WebhookManifests) -> WebhookManifests,
    start: fn(WebhookSet, StartOptions) -> BoxFuture<'static, Result<Started, OperatorError>>,
}

static FUNCTIONS: Functions = Functions {
    check: WebhookSet::check,
    reads: WebhookSet::reads,
    manifests,
    start: |set, options| start(set, options).boxed(),
};

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("is_used", &self.functions.is_some())
            .finish_non_exhaustive()
    }
}

impl Webhooks {
    pub(super) fn check(&self) -> Result<(), OperatorError> {
        match self.functions {
            Some(functions) => (functions.check)(&self.set).map_err(OperatorError::Webhook),
            None => Ok(()),
        }
    }

    /// Returns the kinds and states that the webhooks read.
    pub(super) fn reads(&self) -> ReadDeclarations {
        let functions = self.functions;
        functions.map_or_else(ReadDeclarations::default, |it| (it.reads)(&self.set))
    }

    /// Prepares the server of the webhooks. Returns `None` if there is no webhook.
    pub(super) async fn start(
        self,
        options: &RunOptions,
    ) -> Result<Option<Started>, OperatorError> {
        let Some(functions) = self.functions else {
            return Ok(None);
        };
        let cert_path = match self.certificates {
            WebhookCertificates::CertManager => Some(CERT_MANAGER_PATH.into()),
            WebhookCertificates::Own => None,
        };
        let options = StartOptions {
            address: options.webhook_bind_address,
            certificates: options.webhook_certificates.clone(),
            cert_path: options.webhook_cert_path.clone().or(cert_path),
            // The rest of the grace period is for requests in progress.
            shutdown_delay: options.webhook_shutdown_delay.min(options.grace_period / 2),
            router: options.webhook_router.clone(),
            ready: options.ready.subscribe(),
        };
        (functions.start)(self.set, options).await.map(Some)
    }
}

impl Operator {
    /// Adds the admission webhooks of a kind; see [`Webhook`](opkit_webhook::Webhook). May be
    /// called for several kinds. `manifests` prints the webhook configurations and the Service, and
    /// the operator serves the webhooks over HTTPS on the port of `--webhook-port`, in every
    /// replica.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; pub use opkit_webhook::*; }
    /// use k8s_openapi::api::core::v1::Pod;
    /// use opkit::{Admission, Operator, Webhook};
    ///
    /// fn check(pod: &Pod, _: Option<&Pod>) -> Admission {
    ///     let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    ///     Admission::allowed_if(account != Some("admin"), "this account is not for pods")
    /// }
    /// let operator = Operator::new("pod-operator").webhook(Webhook::new().validating(check));
    /// # drop(operator);
    /// ```
    pub fn webhook(mut self, webhook: impl Into<AnyWebhook>) -> Self {
        self.webhooks.functions = Some(&FUNCTIONS);
        self.webhooks.set.admission.push(webhook.into());
        self
    }

    /// Sets the authentication webhook, with which the API server asks whether a bearer token is
    /// valid: an `async fn(TokenReviewSpec, WebhookContext<S>) -> Result<Authentication>`, served
    /// at `/authenticate`. kube-apiserver calls it if its flag
    /// `--authentication-token-webhook-config-file` names a file with the address of the operator.
    pub fn authentication_webhook<F, Fut, S, E>(mut self, function: F) -> Self
    where
        F: Fn(TokenReviewSpec, WebhookContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Authentication, E>> + Send + 'static,
        S: Send + Sync + 'static,
        E: Into<Error> + 'static,
    {
        self.webhooks.functions = Some(&FUNCTIONS);
        self.webhooks.set.authentication = Some(AuthenticationWebhook::new(function));
        self
    }

    /// Sets the authorization webhook, with which the API server asks whether a user may do
    /// something: an `async fn(SubjectAccessReviewSpec, WebhookContext<S>) ->
    /// Result<Authorization>`, served at `/authorize`. kube-apiserver calls it if its flag
    /// `--authorization-webhook-config-file` names a file with the address of the operator.
    pub fn authorization_webhook<F, Fut, S, E>(mut self, function: F) -> Self
    where
        F: Fn(SubjectAccessReviewSpec, WebhookContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Authorization, E>> + Send + 'static,
        S: Send + Sync + 'static,
        E: Into<Error> + 'static,
    {
        self.webhooks.functions = Some(&FUNCTIONS);
        self.webhooks.set.authorization = Some(AuthorizationWebhook::new(function));
        self
    }

    /// Sets the conversion webhook: a function from the body of a `ConversionReview` to the body of
    /// the response, served at `/convert`.
    #[doc(hidden)]
    pub fn conversion_webhook(
        mut self,
        convert: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        self.webhooks.functions = Some(&FUNCTIONS);
        self.webhooks.set.conversion = Some(ConversionWebhook::new(convert));
        self
    }

    /// Sets where the serving certificate of the webhooks comes from; the operator's own by
    /// default.
    pub fn webhook_certificates(mut self, certificates: WebhookCertificates) -> Self {
        self.webhooks.certificates = certificates;
        self
    }

    /// Adds a `ValidatingAdmissionPolicy`, which `manifests` prints with its binding. A policy
    /// needs no webhook: the API server evaluates it.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_operator::*; }
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use opkit::{Operator, ValidatingPolicy};
    ///
    /// let operator = Operator::new("map-operator").validating_policy(
    ///     ValidatingPolicy::of::<ConfigMap>("small-maps")
    ///         .validation("size(object.data) <= 10", "a map may have at most 10 entries"),
    /// );
    /// # drop(operator);
    /// ```
    pub fn validating_policy(mut self, policy: ValidatingPolicy) -> Self {
        self.webhooks.policies.extend(policy.documents());
        self
    }

    /// Adds a `MutatingAdmissionPolicy`, as [`validating_policy`](Self::validating_policy) does.
    pub fn mutating_policy(mut self, policy: MutatingPolicy) -> Self {
        self.webhooks.policies.extend(policy.documents());
        self
    }

    /// Returns the manifests of the webhooks for an operator that runs with these options, or
    /// `None` if the operator has no webhook.
    pub fn webhook_manifests(&self, options: &RunOptions) -> Option<WebhookManifests> {
        let functions = self.webhooks.functions?;
        let namespace = self.rbac(options).own_namespace();
        let port = options
            .webhook_bind_address
            .map_or(WEBHOOK_PORT, |it| it.port());
        let is_cert_manager = self.webhooks.certificates == WebhookCertificates::CertManager;
        let empty = WebhookManifests::new(&self.name, namespace)
            .port(port)
            .cert_manager(is_cert_manager);
        Some((functions.manifests)(&self.webhooks.set, empty))
    }

    /// Returns the manifests of the admission policies and their bindings.
    pub fn policies(&self) -> &[Value] {
        &self.webhooks.policies
    }

    /// Returns the admission webhooks.
    pub fn webhooks(&self) -> &[AnyWebhook] {
        &self.webhooks.set.admission
    }

    /// Reports whether the operator has a webhook of any sort.
    pub fn has_webhooks(&self) -> bool {
        self.webhooks.functions.is_some()
    }
}

/// Adds the configurations of all webhooks to the manifests.
fn manifests(set: &WebhookSet, mut manifests: WebhookManifests) -> WebhookManifests {
    for webhook in &set.admission {
        if let Some(entry) = webhook.mutating_configuration() {
            manifests = manifests.mutating(entry);
        }
        if let Some(entry) = webhook.validating_configuration() {
            manifests = manifests.validating(entry);
        }
    }
    manifests
}

/// What is needed to start the webhooks.
struct StartOptions {
    /// Address of the HTTPS server; `None` for no server.
    address: Option<SocketAddr>,
    certificates: Option<CertificateSource>,
    cert_path: Option<PathBuf>,
    shutdown_delay: Duration,
    router: watch::Sender<Option<Arc<WebhookRouter>>>,
    ready: watch::Receiver<bool>,
}

/// Webhooks whose server listens, and accepts connections when the manager runs it.
pub(super) struct Started {
    pub(super) runnable: AnyRunnable,
    pub(super) address: Option<SocketAddr>,
    pub(super) health: Option<WebhookHealth>,
}

/// Binds the address of the server, if any, and returns the runnable that serves the webhooks.
async fn start(set: WebhookSet, options: StartOptions) -> Result<Started, OperatorError> {
    let server = match options.address {
        Some(address) => {
            let certificates = match (options.certificates, &options.cert_path) {
                (Some(certificates), _) => certificates,
                (None, Some(directory)) => CertificateSource::files(directory)?,
                (None, None) => return Err(OperatorError::NoWebhookCertificate),
            };
            let mut serving = WebhookServerOptions::new(address, certificates);
            serving.shutdown_delay = options.shutdown_delay;
            Some(Arc::new(WebhookServer::listen(serving).await?))
        }
        None => None,
    };
    let (published, ready) = (options.router, options.ready);
    // The manager runs a server once, but its type allows more runs.
    let set = Mutex::new(Some(set));
    let serving = server.clone();
    let runnable = AnyRunnable::server("the webhook server", move |cx: RunContext| {
        let set = set.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (server, published, ready) = (serving.clone(), published.clone(), ready.clone());
        async move {
            let router = Arc::new(WebhookRouter::new(set.unwrap_or_default(), cx.clone()));
            published.send_replace(Some(router.clone()));
            match server {
                Some(server) => {
                    server.register(&mut cx.metrics().lock());
                    server
                        .serve(router, shutdown(ready), cx.stop_token())
                        .await?;
                }
                None => cx.stopped().await,
            }
            published.send_replace(None);
            Ok(())
        }
    });
    Ok(Started {
        runnable,
        address: server.as_ref().map(|server| server.address()),
        health: server.map(|server| server.health()),
    })
}

/// Waits until the operator, after it was ready, shuts down.
async fn shutdown(mut ready: watch::Receiver<bool>) {
    for expected in [true, false] {
        // An error means that the operator has been dropped.
        if ready.wait_for(|ready| *ready == expected).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
