//! The three implementations of a [`ControlPlane`](crate::ControlPlane), and the differences
//! between them that a test can observe.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use kube::client::Body;
use kube::config::Kubeconfig;
use opkit_apiserver::{Options, Server};
use opkit_client::{ClientOptions, DeleteOptions, Kind, ObjectKey, RestClient, WriteOptions};
use opkit_operator::Operator;
use serde_json::json;
use tokio::time::Instant;

use crate::TestError;
use crate::binaries::{self, Binaries};
use crate::error::refused;
use crate::webhooks;

/// Field manager that creates the namespaces of tests.
const MANAGER: &str = "opkit-test";
/// Time limit for the deletion of a namespace on an existing cluster.
const NAMESPACE_MAX: Duration = Duration::from_secs(60);
/// Maximum time between a failed request and the watchdog's report that a process has ended. Also
/// the interval at which the deletion of a namespace is checked.
const EXIT_REPORT_MAX: Duration = Duration::from_millis(500);

/// Feature that a test may need and that not every control plane has; see
/// [`ControlPlane::require`](crate::ControlPlane::require).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Capability {
    /// Deployments get Pods, dependents of deleted objects are collected, namespaces terminate.
    /// This needs kube-controller-manager, which `setup-envtest` does not install.
    ControllerManager,
    /// Pods can be evicted, within the limits of disruption budgets.
    Eviction,
    /// Lists and watches can select one shard of the objects of a kind. This needs the feature gate
    /// `ShardedListAndWatch`, alpha in Kubernetes 1.36.
    Shards,
    /// Service accounts get tokens that the server accepts, and RBAC rules limit each account.
    Tokens,
    /// CEL rules in CRDs (`x-kubernetes-validations`) are checked.
    Cel,
    /// Custom resources are converted between versions by a webhook.
    ConversionWebhooks,
    /// Webhooks and policies of `admissionregistration.k8s.io` are called; quotas and limit ranges
    /// are enforced.
    Admission,
    /// A child may block the deletion of its owner only if its writer may update the finalizers of
    /// the owner. This needs the admission plugin of the same name, which is off by default.
    OwnerReferencesPermissionEnforcement,
    /// StatefulSets get Pods.
    StatefulSets,
    /// DaemonSets get Pods.
    DaemonSets,
    /// Jobs get Pods, and complete when their Pods do.
    /// [`ControlPlane::complete_job`](crate::ControlPlane::complete_job) works without this
    /// capability.
    Jobs,
    /// CronJobs start Jobs on their schedule.
    CronJobs,
    /// The API server can call servers that listen on a loopback address of this machine, such as
    /// webhooks.
    LocalServers,
    /// Each test has its own server, which starts in milliseconds and has no objects of other
    /// tests.
    OwnServer,
}

/// Control plane that a test runs on.
#[derive(Debug)]
pub(crate) enum Backend {
    Embedded(Server),
    Binaries(Arc<Binaries>),
    Cluster,
}

impl Backend {
    /// Starts an embedded server for one test. Returns the server with a client for the namespace
    /// `default`.
    pub(crate) fn embedded() -> Result<(Self, RestClient), TestError> {
        let server = Server::start(Options::default()).map_err(TestError::Start)?;
        let client = in_process_options().in_process(server.service(), "default");
        Ok((Self::Embedded(server), RestClient::new(client)))
    }

    /// Returns the real Kubernetes processes that the tests of this process share, and a client for
    /// a new namespace.
    pub(crate) async fn binaries() -> Result<(Self, RestClient), TestError> {
        let plane = binaries::shared().await.map_err(TestError::Binaries)?;
        let backend = Self::Binaries(plane.clone());
        if let Some(error) = plane.ended() {
            return Err(TestError::Binaries(Arc::new(error)));
        }
        let client = plane.client(&namespace_name()).await;
        let client = RestClient::new(client.map_err(|cause| TestError::Client { cause })?);
        match create_namespace(&client).await {
            Ok(()) => Ok((backend, client)),
            Err(error) => Err(backend.cause_of(error).await),
        }
    }

    /// Returns the cluster of the current kubeconfig, and a client for a new namespace.
    pub(crate) async fn cluster() -> Result<(Self, RestClient), TestError> {
        let client = opkit_client::connect(None)
            .await
            .map_err(TestError::Cluster)?;
        let client = RestClient::new(in_namespace(client, &namespace_name()));
        create_namespace(&client).await?;
        Ok((Self::Cluster, client))
    }

    /// Returns a client that acts as a ServiceAccount, with the namespace of the ServiceAccount as
    /// the default namespace. `admin` is a client of the administrator.
    pub(crate) async fn service_account_client(
        &self,
        admin: &RestClient,
        namespace: &str,
        name: &str,
    ) -> Result<kube::Client, TestError> {
        match self {
            Self::Embedded(server) => {
                let service = server.service_as_service_account(namespace, name);
                Ok(in_process_options().in_process(service, namespace))
            }
            Self::Binaries(plane) => {
                let token = request_token(admin, namespace, name).await?;
                let client = plane.client_with_token(namespace, &token).await;
                client.map_err(|cause| TestError::Client { cause })
            }
            Self::Cluster => {
                let token = request_token(admin, namespace, name).await?;
                let options = ClientOptions::default();
                let client = opkit_client::connect_with_token(token, options).await;
                Ok(in_namespace(client.map_err(TestError::Cluster)?, namespace))
            }
        }
    }

    /// Reports whether other tests use this control plane at the same time, each in its own
    /// namespace.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Self::Embedded(_))
    }

    /// Returns the default time limit of a test's waits. The limit is higher on shared control
    /// planes, because real controllers queue and back off.
    pub(crate) fn default_timeout(&self) -> Duration {
        Duration::from_secs(if self.is_shared() { 60 } else { 20 })
    }

    /// Returns the interval at which a waiting test reads an object.
    pub(crate) fn poll_interval(&self) -> Duration {
        Duration::from_millis(if self.is_shared() { 25 } else { 2 })
    }

    /// Returns the reason why the control plane lacks `capability`, or `None` if it has the
    /// capability.
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
            (
                Capability::OwnerReferencesPermissionEnforcement,
                Self::Embedded(_) | Self::Cluster,
            ) => Some("the admission plugin OwnerReferencesPermissionEnforcement is off"),
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
            (Capability::Shards, Self::Binaries(plane)) if !plane.has_shards() => {
                Some("this kube-apiserver has no feature gate ShardedListAndWatch")
            }
            (Capability::Shards, Self::Cluster) => {
                Some("the feature gate ShardedListAndWatch is off by default on this cluster")
            }
            (Capability::LocalServers, Self::Cluster) => {
                Some("the cluster cannot reach the webhooks of a test")
            }
            (Capability::OwnServer, Self::Binaries(_) | Self::Cluster) => Some(
                "it needs many servers of its own, and only embedded ones start in milliseconds",
            ),
            _ => None,
        }
    }

    /// Serves the webhooks of an operator to the control plane.
    ///
    /// # Errors
    /// [`TestError::Skipped`] if the control plane cannot reach the webhooks.
    pub(crate) fn serve_webhooks(&self, operator: &Operator) -> Result<(), TestError> {
        match self {
            Self::Embedded(server) => {
                webhooks::serve(server, operator);
                Ok(())
            }
            // The conversion webhook is registered once the operator listens.
            Self::Binaries(_) => Ok(()),
            Self::Cluster if operator.versions().is_empty() => Ok(()),
            Self::Cluster => Err(TestError::Skipped {
                reason: "a cluster cannot call the conversion webhook of this process".to_owned(),
            }),
        }
    }

    /// Reports whether a controller runs Jobs.
    pub(crate) fn has_job_controller(&self) -> bool {
        self.lacks(Capability::Jobs).is_none()
    }

    /// Reports whether pods run without containers, so that they never end by themselves.
    pub(crate) fn simulates_kubelet(&self) -> bool {
        !matches!(self, Self::Cluster)
    }

    /// Returns the features that objects have used so far and that the control plane does not
    /// implement.
    pub(crate) fn unmodelled(&self) -> Vec<String> {
        match self {
            Self::Embedded(server) => server.unmodelled(),
            Self::Binaries(_) | Self::Cluster => Vec::new(),
        }
    }

    /// Returns the path of the server's audit log, if there is one.
    pub(crate) fn audit_log(&self) -> Option<PathBuf> {
        match self {
            Self::Binaries(plane) => Some(plane.audit_log()),
            Self::Embedded(_) | Self::Cluster => None,
        }
    }

    /// Returns the path of the control plane's own kubectl, if there is one.
    pub(crate) fn kubectl(&self) -> Option<&Path> {
        match self {
            Self::Binaries(plane) => plane.kubectl(),
            Self::Embedded(_) | Self::Cluster => None,
        }
    }

    /// Returns a kubeconfig for other processes. An embedded server starts to listen on `address`;
    /// other control planes already listen, and ignore `address`.
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
                // JSON is valid YAML.
                serde_json::to_string(&config).map_err(|error| text(&error))
            }
        }
    }

    /// Waits until a process of the control plane ends, which usually does not happen during a
    /// test.
    pub(crate) async fn died(&self) -> TestError {
        match self {
            Self::Binaries(plane) => TestError::Binaries(Arc::new(plane.died().await)),
            Self::Embedded(_) | Self::Cluster => std::future::pending().await,
        }
    }

    /// Returns an error about the process of the control plane that has ended, or `error` if no
    /// process has ended.
    pub(crate) async fn cause_of<E>(&self, error: E) -> E
    where
        E: From<TestError>,
    {
        match tokio::time::timeout(EXIT_REPORT_MAX, self.died()).await {
            Ok(died) if matches!(self, Self::Binaries(_)) => died.into(),
            _ => error,
        }
    }

    /// Deletes the namespace of a test. On an existing cluster, waits until the namespace is
    /// deleted, so that the test's operators can clean up. On a control plane that stops with the
    /// process, does not wait.
    pub(crate) async fn remove_namespace(&self, client: &RestClient) -> Result<(), TestError> {
        if !self.is_shared() {
            return Ok(());
        }
        let kube = client.kube();
        let namespace = kube.default_namespace();
        let (kind, key) = (Kind::of::<Namespace>(), ObjectKey::from(namespace));
        let options = DeleteOptions::background();
        let deleted = client.delete(&kind, &key, &options).await;
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
            tokio::time::sleep(EXIT_REPORT_MAX).await;
        }
        Err(TestError::NamespaceStays {
            namespace: namespace.to_owned(),
            timeout: NAMESPACE_MAX,
        })
    }
}

/// Returns the options of clients of an embedded server. Within one process compression only costs
/// time.
fn in_process_options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.gzip = false;
    options
}

/// Returns `client` with another default namespace, which kube cannot change.
fn in_namespace(client: kube::Client, namespace: &str) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    kube::Client::new(service, namespace)
}

/// Requests a token of a ServiceAccount, which is valid for an hour.
async fn request_token(
    admin: &RestClient,
    namespace: &str,
    name: &str,
) -> Result<String, TestError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.kube(), namespace);
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let created = accounts.create_token_request(name, &params, &request);
    let created = created.await.map_err(|error| TestError::Client {
        cause: format!("there is no token of ServiceAccount {namespace}/{name}: {error}"),
    })?;
    Ok(created
        .status
        .and_then(|status| status.token)
        .unwrap_or_default())
}

fn namespace_name() -> String {
    format!("opkit-test-{}", binaries::random())
}

/// Creates the default namespace of `client`.
async fn create_namespace(client: &RestClient) -> Result<(), TestError> {
    let kube = client.kube();
    let name = kube.default_namespace();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let options = WriteOptions::for_manager(MANAGER);
    let created = client
        .create(&Kind::of::<Namespace>(), None, &namespace, &options)
        .await;
    created
        .map(drop)
        .map_err(|cause| refused(format!("create Namespace {name}"), cause))
}
