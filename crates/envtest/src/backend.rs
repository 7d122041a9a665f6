//! What stands behind a [`ControlPlane`](crate::ControlPlane): one of three, and what a test
//! notices of it.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{client::Body, config::Kubeconfig};
use opkit_apiserver::{Options, Server};
use opkit_client::{ClientOptions, Kind, ObjectKey, RestClient};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    TestError,
    binaries::{self, Binaries},
    error::refused,
};

/// Who makes the namespaces.
const MANAGER: &str = "opkit-test";
/// How long a namespace may take to go from a cluster that stays.
const NAMESPACE_MAX: Duration = Duration::from_secs(60);
/// How long after a failed request the end of a process is known at the latest.
const NEWS: Duration = Duration::from_millis(500);

/// What a test may need that not every control plane has; see
/// [`ControlPlane::require`](crate::ControlPlane::require).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Capability {
    /// Deployments become Pods, dependents of what is deleted go, namespaces end. A directory of
    /// `setup-envtest` holds no kube-controller-manager, which does that.
    ControllerManager,
    /// Pods are evicted, as disruption budgets allow.
    Eviction,
    /// Lists and watches of a shard of a kind: the feature gate `ShardedListAndWatch`, alpha in
    /// Kubernetes 1.36.
    Shards,
    /// Service accounts get tokens, which the server knows again, and rules say what each may do.
    Tokens,
    /// CEL rules in CRDs (`x-kubernetes-validations`) are checked.
    Cel,
    /// Custom resources are converted between versions by a webhook.
    ConversionWebhooks,
    /// Webhooks and policies of `admissionregistration.k8s.io` are asked; quotas and limit ranges
    /// limit.
    Admission,
    /// StatefulSets become Pods.
    StatefulSets,
    /// DaemonSets become Pods.
    DaemonSets,
    /// Jobs become Pods, and complete with them.
    /// [`ControlPlane::complete_job`](crate::ControlPlane::complete_job) works without it.
    Jobs,
    /// CronJobs start Jobs on their schedule.
    CronJobs,
    /// A server of the test's own, which starts in milliseconds and holds nothing of other tests.
    OwnServer,
}

/// The control plane itself.
#[derive(Debug)]
pub(crate) enum Backend {
    Embedded(Server),
    Binaries(Arc<Binaries>),
    Cluster,
}

impl Backend {
    /// The embedded one, and a client in the namespace `default`, which nobody shares.
    pub(crate) fn embedded() -> Result<(Self, RestClient), TestError> {
        let server = Server::start(Options::default()).map_err(TestError::Start)?;
        let mut options = ClientOptions::default();
        // Within a process it would only cost time.
        options.gzip = false;
        let client = RestClient::new(options.in_process(server.service(), "default"));
        Ok((Self::Embedded(server), client))
    }

    /// That of this process, and a client in a new namespace.
    pub(crate) async fn binaries() -> Result<(Self, RestClient), TestError> {
        let plane = binaries::shared().await.map_err(TestError::Binaries)?;
        let backend = Self::Binaries(plane.clone());
        if let Some(error) = plane.ended() {
            return Err(TestError::Binaries(Arc::new(error)));
        }
        let client = plane.client(&namespace_name()).await;
        let client = RestClient::new(client.map_err(|cause| TestError::Client { cause })?);
        match make_namespace(&client).await {
            Ok(()) => Ok((backend, client)),
            Err(error) => Err(backend.why(error).await),
        }
    }

    /// That of the current kubeconfig, and a client in a new namespace.
    pub(crate) async fn cluster() -> Result<(Self, RestClient), TestError> {
        let client = opkit_client::connect(None)
            .await
            .map_err(TestError::Cluster)?;
        // kube has no way to change the default namespace of a client.
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        let client = RestClient::new(kube::Client::new(service, namespace_name()));
        make_namespace(&client).await?;
        Ok((Self::Cluster, client))
    }

    /// Whether other tests use it at the same time, each in a namespace of its own.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Self::Embedded(_))
    }

    /// How long a test waits for what it says will happen: real controllers queue, and back off.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(if self.is_shared() { 60 } else { 20 })
    }

    /// How often it looks.
    pub(crate) fn look(&self) -> Duration {
        Duration::from_millis(if self.is_shared() { 25 } else { 2 })
    }

    /// Why it lacks `capability`, if it does.
    pub(crate) fn lacks(&self, capability: Capability) -> Option<&'static str> {
        match (capability, self) {
            (
                Capability::ControllerManager
                | Capability::StatefulSets
                | Capability::DaemonSets
                | Capability::Jobs
                | Capability::CronJobs,
                Self::Binaries(plane),
            ) if !plane.has_controller_manager() => {
                Some("there is no kube-controller-manager beside kube-apiserver")
            }
            (Capability::Cel, Self::Embedded(_)) => {
                Some("the embedded control plane does not check CEL rules")
            }
            (Capability::ConversionWebhooks, Self::Embedded(_)) => {
                Some("the embedded control plane calls no conversion webhooks")
            }
            (Capability::Admission, Self::Embedded(_)) => Some(
                "the embedded control plane has no webhooks, admission policies, quotas and limit ranges",
            ),
            (Capability::StatefulSets, Self::Embedded(_)) => {
                Some("the embedded control plane runs no StatefulSets")
            }
            (Capability::DaemonSets, Self::Embedded(_)) => {
                Some("the embedded control plane runs no DaemonSets")
            }
            (Capability::Jobs, Self::Embedded(_)) => {
                Some("the embedded control plane runs no Jobs")
            }
            (Capability::CronJobs, Self::Embedded(_)) => {
                Some("the embedded control plane starts no Jobs on a schedule")
            }
            (Capability::Eviction, Self::Embedded(_)) => {
                Some("the embedded control plane does not model pods/eviction")
            }
            (Capability::Tokens, Self::Embedded(_)) => {
                Some("the embedded control plane knows one administrator, who may do everything")
            }
            (Capability::Shards, Self::Binaries(plane)) if !plane.has_shards() => {
                Some("this kube-apiserver has no feature gate ShardedListAndWatch")
            }
            (Capability::Shards, Self::Cluster) => {
                Some("the feature gate ShardedListAndWatch is off unless somebody switches it on")
            }
            (Capability::OwnServer, Self::Binaries(_) | Self::Cluster) => Some(
                "it needs many servers of its own, and only embedded ones start in milliseconds",
            ),
            _ => None,
        }
    }

    /// Whether something runs Jobs.
    pub(crate) fn has_job_controller(&self) -> bool {
        self.lacks(Capability::Jobs).is_none()
    }

    /// Whether pods run without containers, which then never end by themselves.
    pub(crate) fn plays_kubelet(&self) -> bool {
        !matches!(self, Self::Cluster)
    }

    /// Returns the features that objects relied on so far and that the control plane does not
    /// model.
    pub(crate) fn unmodelled(&self) -> Vec<String> {
        match self {
            Self::Embedded(server) => server.unmodelled(),
            Self::Binaries(_) | Self::Cluster => Vec::new(),
        }
    }

    /// The kubectl of the control plane.
    pub(crate) fn kubectl(&self) -> Option<&Path> {
        match self {
            Self::Binaries(plane) => plane.kubectl(),
            Self::Embedded(_) | Self::Cluster => None,
        }
    }

    /// A kubeconfig for other processes. Only the embedded one has to begin to listen for it.
    pub(crate) async fn listen(
        &self,
        address: SocketAddr,
        namespace: &str,
    ) -> Result<String, TestError> {
        match self {
            Self::Embedded(server) => {
                let endpoint = server.listen(address).await.map_err(TestError::Start)?;
                Ok(endpoint.kubeconfig())
            }
            Self::Binaries(plane) => Ok(plane.kubeconfig(namespace)),
            Self::Cluster => {
                let text = |error: &dyn std::error::Error| TestError::Client {
                    cause: error.to_string(),
                };
                let mut config = Kubeconfig::read().map_err(|error| text(&error))?;
                for context in &mut config.contexts {
                    if let Some(context) = &mut context.context {
                        context.namespace = Some(namespace.to_owned());
                    }
                }
                // JSON is YAML.
                serde_json::to_string(&config).map_err(|error| text(&error))
            }
        }
    }

    /// Waits until it runs no more, which most never do before the test ends.
    pub(crate) async fn died(&self) -> TestError {
        match self {
            Self::Binaries(plane) => TestError::Binaries(Arc::new(plane.died().await)),
            Self::Embedded(_) | Self::Cluster => std::future::pending().await,
        }
    }

    /// The end of a process, if that is behind `error`.
    pub(crate) async fn why<E>(&self, error: E) -> E
    where
        E: From<TestError>,
    {
        match tokio::time::timeout(NEWS, self.died()).await {
            Ok(died) if matches!(self, Self::Binaries(_)) => died.into(),
            _ => error,
        }
    }

    /// Removes the namespace of a test. A cluster that stays is waited for, while the test's
    /// operators can still clean up; other tests do not wait for one that ends with the process.
    pub(crate) async fn remove_namespace(&self, client: &RestClient) -> Result<(), TestError> {
        if !self.is_shared() {
            return Ok(());
        }
        let kube = client.kube();
        let namespace = kube.default_namespace();
        let (kind, key) = (Kind::of::<Namespace>(), ObjectKey::from(namespace));
        let deleted = client.delete(&kind, &key, None, None).await;
        deleted.map_err(|cause| refused(format!("delete Namespace {key}"), cause))?;
        if !matches!(self, Self::Cluster) {
            return Ok(());
        }
        let deadline = Instant::now() + NAMESPACE_MAX;
        while Instant::now() < deadline {
            if client
                .get(&kind, &key)
                .await
                .is_err_and(|e| e.is_not_found())
            {
                return Ok(());
            }
            tokio::time::sleep(NEWS).await;
        }
        Err(TestError::NamespaceStays {
            namespace: namespace.to_owned(),
            timeout: NAMESPACE_MAX,
        })
    }
}

fn namespace_name() -> String {
    format!("opkit-test-{}", binaries::random())
}

/// Makes the namespace that is the default of `client`.
async fn make_namespace(client: &RestClient) -> Result<(), TestError> {
    let kube = client.kube();
    let name = kube.default_namespace();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let made = client
        .create(&Kind::of::<Namespace>(), None, &namespace, MANAGER)
        .await;
    made.map(drop)
        .map_err(|cause| refused(format!("create Namespace {name}"), cause))
}
