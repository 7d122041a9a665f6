//! Webhooks and admission policies of an operator.
//!
//! Everything that serves or prints webhooks is called through [`Functions`], which the first
//! webhook sets. The linker therefore leaves it out of an operator without webhooks.

mod conversion;
mod own_certificates;

use std::any::Any;
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
use opkit_apimachinery::conversion::KindVersions;
use opkit_certificates::{CertificateKeeper, KeeperOptions};
use opkit_client::RestClient;
use opkit_controller::{AnyRunnable, Error, ReadDeclarations, Result, RunContext};
use opkit_manifests::{
    MutatingPolicy, ValidatingPolicy, WEBHOOK_CERTIFICATE_PATH, WebhookManifests,
};
use opkit_webhook::{
    AnyWebhook, Authentication, AuthenticationWebhook, Authorization, AuthorizationWebhook,
    CertificateSource, ConversionWebhook, WebhookContext, WebhookRouter, WebhookServer,
    WebhookServerOptions, WebhookSet,
};
use serde_json::Value;
use tokio::sync::watch;

pub use self::own_certificates::OwnCertificateOptions;
use self::own_certificates::OwnCertificates;
pub(crate) use self::own_certificates::check_host;
use super::{Operator, RunOptions};
use crate::{OperatorError, namespaces};

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

/// The functions for webhooks, for kinds with several versions, whose conversion is a webhook.
#[doc(hidden)]
pub static CONVERSIONS: &(dyn Any + Send + Sync) = &FUNCTIONS;

/// Functions for webhooks, which an operator without webhooks does not contain.
struct Functions {
    check: fn(&WebhookSet) -> Result<(), String>,
    reads: fn(&WebhookSet) -> ReadDeclarations,
    manifests: fn(&WebhookSet, WebhookManifests) -> WebhookManifests,
    conversion: fn(Vec<KindVersions>) -> ConversionWebhook,
    start: fn(WebhookSet, StartOptions) -> BoxFuture<'static, Result<Started, OperatorError>>,
}

static FUNCTIONS: Functions = Functions {
    check: WebhookSet::check,
    reads: WebhookSet::reads,
    manifests,
    conversion: conversion::webhook,
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

    /// Serves the conversions of kinds with several versions, with the functions in
    /// [`CONVERSIONS`].
    pub(super) fn serve_conversions(&mut self, serving: &'static (dyn Any + Send + Sync)) {
        self.functions = self.functions.or(serving.downcast_ref());
    }

    /// Sets the kinds whose objects are converted.
    pub(super) fn convert(&mut self, kinds: &[KindVersions]) {
        if let (Some(functions), false) = (self.functions, kinds.is_empty()) {
            self.set.conversion = Some((functions.conversion)(kinds.to_vec()));
        }
    }

    /// Prepares the server of the webhooks. Returns `None` if there is no webhook. `own` are the
    /// operator's own certificates, which are used if the options have no others.
    pub(super) async fn start(
        self,
        options: &RunOptions,
        own: Option<OwnCertificates>,
        client: kube::Client,
    ) -> Result<Option<Started>, OperatorError> {
        let Some(functions) = self.functions else {
            return Ok(None);
        };
        let given = options.webhook_certificates.clone();
        let path = options.webhook_cert_path.clone();
        let certificates = match (given, path, own) {
            (Some(given), _, _) => Certificates::Given(given),
            (None, Some(path), _) => Certificates::Files(path),
            (None, None, Some(own)) => Certificates::Own(Box::new(own.keeper()), client),
            (None, None, None) => Certificates::Files(WEBHOOK_CERTIFICATE_PATH.into()),
        };
        let address = options.webhook_bind_address;
        let options = StartOptions {
            server: address.map(|address| (address, certificates)),
            enable_http2: options.enable_http2,
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
        let namespace = self.rbac(options).own_namespace();
        self.webhook_manifests_in(options, &namespace)
    }

    fn webhook_manifests_in(
        &self,
        options: &RunOptions,
        namespace: &str,
    ) -> Option<WebhookManifests> {
        let functions = self.webhooks.functions?;
        let port = options
            .webhook_bind_address
            .map_or(WEBHOOK_PORT, |it| it.port());
        let is_cert_manager = self.webhooks.certificates == WebhookCertificates::CertManager;
        let mut empty = WebhookManifests::new(&self.name, namespace)
            .port(port)
            .cert_manager(is_cert_manager)
            .namespaces(self.webhook_namespaces(options, namespace));
        if let Some(prefix) = &options.webhook_configuration_prefix {
            empty = empty.configuration_prefix(prefix);
        }
        Some((functions.manifests)(&self.webhooks.set, empty))
    }

    /// Returns the namespaces whose objects reach the webhooks; empty for all.
    fn webhook_namespaces(&self, options: &RunOptions, own: &str) -> Vec<String> {
        match self.namespaced {
            true => namespaces::chosen(&options.namespaces, &[own.to_owned()]),
            false => Vec::new(),
        }
    }

    /// Returns the operator's own certificates, or `None` if it needs none with these options.
    pub(super) fn own_certificates(
        &self,
        options: &RunOptions,
        namespace: &str,
    ) -> Option<OwnCertificates> {
        let is_own = self.webhooks.certificates == WebhookCertificates::Own
            && options.webhook_bind_address.is_some()
            && options.webhook_certificates.is_none()
            && options.webhook_cert_path.is_none();
        let manifests = self.webhook_manifests_in(options, namespace)?;
        let own = || {
            let options = options.own_certificates.clone();
            OwnCertificates::new(&self.name, manifests, &self.crds, options)
        };
        is_own.then(own)
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

/// Where the serving certificate comes from.
enum Certificates {
    Given(CertificateSource),
    /// Directory with the files of a certificate.
    Files(PathBuf),
    Own(Box<KeeperOptions>, kube::Client),
}

/// What is needed to start the webhooks.
struct StartOptions {
    /// Address and certificate of the HTTPS server; `None` for no server.
    server: Option<(SocketAddr, Certificates)>,
    enable_http2: bool,
    shutdown_delay: Duration,
    router: watch::Sender<Option<Arc<WebhookRouter>>>,
    ready: watch::Receiver<bool>,
}

/// Webhooks whose server listens, and accepts connections when the manager runs it.
pub(super) struct Started {
    pub(super) runnable: AnyRunnable,
    pub(super) address: Option<SocketAddr>,
    /// Checks whether the server should get requests; `None` if there is no server.
    pub(super) health: Option<HealthCheck>,
}

type HealthCheck = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// HTTPS server with the task that keeps its certificate.
#[derive(Clone)]
struct Serving {
    server: Arc<WebhookServer>,
    /// The operator's own certificates; `None` if they come from elsewhere, or run already.
    keeper: Arc<Mutex<Option<CertificateKeeper>>>,
}

impl Serving {
    /// Binds the address of the server.
    async fn listen(
        address: SocketAddr,
        certificates: Certificates,
        shutdown_delay: Duration,
        enable_http2: bool,
    ) -> Result<Self, OperatorError> {
        let mut keeper = None;
        let certificates = match certificates {
            Certificates::Given(given) => given,
            Certificates::Files(directory) => CertificateSource::files(&directory)?,
            Certificates::Own(options, client) => {
                let (sender, source) = CertificateSource::channel();
                let client = RestClient::new(client);
                keeper = Some(CertificateKeeper::new(client, *options, sender));
                source
            }
        };
        let mut options = WebhookServerOptions::new(address, certificates);
        options.shutdown_delay = shutdown_delay;
        options.enable_http2 = enable_http2;
        Ok(Self {
            server: Arc::new(WebhookServer::listen(options).await?),
            keeper: Arc::new(Mutex::new(keeper)),
        })
    }

    fn health(&self) -> HealthCheck {
        let server = self.server.health();
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        let certificates = keeper.as_ref().map(CertificateKeeper::health);
        Box::new(move || {
            certificates.as_ref().map_or(Ok(()), |check| check())?;
            server.check().map_err(|error| error.to_string())
        })
    }

    /// Serves the webhooks until the manager stops, and keeps the certificate until then.
    async fn run(
        self,
        router: Arc<WebhookRouter>,
        cx: &RunContext,
        ready: watch::Receiver<bool>,
    ) -> Result {
        let keeper = self
            .keeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let keep = async {
            if let Some(keeper) = keeper {
                keeper.run(cx.stop_token()).await;
            }
        };
        self.server.register(&mut cx.metrics().lock());
        let serve = self.server.serve(router, shutdown(ready), cx.stop_token());
        let ((), served) = tokio::join!(keep, serve);
        Ok(served?)
    }
}

/// Binds the address of the server, if any, and returns the runnable that serves the webhooks.
async fn start(set: WebhookSet, options: StartOptions) -> Result<Started, OperatorError> {
    let serving = match options.server {
        Some((address, certificates)) => {
            let (delay, enable_http2) = (options.shutdown_delay, options.enable_http2);
            Some(Serving::listen(address, certificates, delay, enable_http2).await?)
        }
        None => None,
    };
    let address = serving.as_ref().map(|serving| serving.server.address());
    let health = serving.as_ref().map(Serving::health);
    let (published, ready) = (options.router, options.ready);
    // The manager runs a server once, but its type allows more runs.
    let set = Mutex::new(Some(set));
    let runnable = AnyRunnable::server("the webhook server", move |cx: RunContext| {
        let set = set.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (serving, published, ready) = (serving.clone(), published.clone(), ready.clone());
        async move {
            let router = Arc::new(WebhookRouter::new(set.unwrap_or_default(), cx.clone()));
            published.send_replace(Some(router.clone()));
            match serving {
                Some(serving) => serving.run(router, &cx, ready).await?,
                None => cx.stopped().await,
            }
            published.send_replace(None);
            Ok(())
        }
    });
    Ok(Started {
        runnable,
        address,
        health,
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
