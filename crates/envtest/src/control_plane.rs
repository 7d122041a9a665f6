//! The control plane that a test uses.

use std::ffi::OsString;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt};

use opkit_client::{DeleteOptions, Kind, Object, ObjectKey, Patch, RestClient, WriteOptions};
use opkit_controller::{Error, MetricsRegistry, ReconcileLog, Result};
use opkit_operator::{CertificatePeriods, Operator, RunOptions};
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::{Backend, Capability};
use crate::choice::{self, Choice};
use crate::denials::Denials;
use crate::error::{TestError, refused};
pub use auth_server::AuthServer;
use operators::OperatorRights;

mod auth_server;
mod conversion;
mod install;
mod metrics;
mod objects;
mod operators;
mod own_certificates;
#[cfg(test)]
mod tests;
mod waiting;
mod webhooks;

/// Field manager of the objects that a test applies.
const MANAGER: &str = "opkit-test";
/// Time that an operator gets to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Control plane of a test, with the operators that the test has started on it.
///
/// An [embedded](ControlPlane::embedded) control plane belongs to one test. [Real
/// binaries](ControlPlane::binaries) and a [cluster](ControlPlane::cluster) are shared with other
/// tests: each test has its own namespace, and its operators watch only that namespace.
///
/// A clone is another handle of the same control plane. `#[opkit::test]` creates the control plane
/// that `OPKIT_CONTROL_PLANE` selects, and shuts it down after the test.
///
/// # Examples
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use opkit_envtest::ControlPlane;
/// # async fn example(plane: ControlPlane) -> opkit_controller::Result {
/// let mut config_map = ConfigMap::default();
/// config_map.metadata.name = Some("one".into());
/// plane.apply(config_map).await?;
/// plane.eventually("one", |found: &ConfigMap| found.metadata.uid.is_some()).await?;
/// plane.delete::<ConfigMap>("one").await?;
/// plane.eventually_gone::<ConfigMap>("one").await
/// # }
/// # opkit_envtest::run("doc", "example", example);
/// ```
#[derive(Clone)]
pub struct ControlPlane {
    inner: Arc<Inner>,
    /// Time limit of this handle's waits.
    timeout: Duration,
    /// Rights of the operators that this handle starts.
    rights: OperatorRights,
    /// Periods of the own certificates of the operators that this handle starts; `None` if the test
    /// creates the certificates.
    own_certificates: Option<CertificatePeriods>,
}

struct Inner {
    backend: Backend,
    client: RestClient,
    namespace: String,
    log: ReconcileLog,
    /// Metrics of each operator.
    metrics: Mutex<Vec<MetricsRegistry>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Lock that a test of cluster-scoped kinds holds on a shared control plane, because no
    /// namespace isolates such tests.
    cluster_scope_lock: Mutex<Option<OwnedMutexGuard<()>>>,
    /// Errors of operators that stopped before the test did.
    failures: Arc<Mutex<Vec<TestError>>>,
    /// Requests of operators that were denied.
    denials: Denials,
    /// Prefixes of the names of the operators' ServiceAccounts and roles.
    prefixes: Mutex<Vec<String>>,
    /// Kinds and names of the cluster-scoped roles and bindings of operators.
    cluster_roles: Mutex<Vec<(Kind, String)>>,
    /// Kinds and names of the webhook configurations of operators.
    webhook_configurations: Mutex<Vec<(Kind, String)>>,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("namespace", &self.inner.namespace)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts an embedded control plane on the current tokio runtime. [`ControlPlane::shutdown`]
    /// stops it.
    ///
    /// # Errors
    /// If the control plane does not start.
    pub fn embedded() -> Result<Self, TestError> {
        Ok(Self::new(Backend::embedded()?))
    }

    /// Creates a namespace on real Kubernetes: etcd, kube-apiserver and, if installed,
    /// kube-controller-manager. These processes are started once per test process and stop with the
    /// test process. Pods run immediately, on a simulated node.
    ///
    /// The executables are those of `TEST_ASSET_*` and `KUBEBUILDER_ASSETS`, or else those that
    /// `cargo xtask control-plane` installs.
    ///
    /// # Errors
    /// If an executable is missing or ends; the error names the executable and its log.
    ///
    /// # Cancel safety
    /// Safe to drop; the namespace may then stay until the process ends.
    pub async fn binaries() -> Result<Self, TestError> {
        Ok(Self::new(Backend::binaries().await?))
    }

    /// Creates a namespace on the cluster of the current kubeconfig; [`ControlPlane::shutdown`]
    /// deletes the namespace.
    ///
    /// # Errors
    /// If there is no usable kubeconfig, or the cluster refuses the namespace.
    ///
    /// # Cancel safety
    /// Safe to drop; the namespace may then stay.
    pub async fn cluster() -> Result<Self, TestError> {
        Ok(Self::new(Backend::cluster().await?))
    }

    /// Starts the control plane that the environment variable `OPKIT_CONTROL_PLANE` selects:
    /// `embedded` (the default), `binaries` or `cluster`. If that variable is not set, a true value
    /// of `USE_EXISTING_CLUSTER` selects `cluster`. A true value of `OPKIT_OPERATORS_AS_ADMIN` has
    /// the effect of [`operators_as_admin`](ControlPlane::operators_as_admin).
    ///
    /// # Errors
    /// If `OPKIT_CONTROL_PLANE` has another value, or if the selected control plane does not start;
    /// see [`embedded`](ControlPlane::embedded), [`binaries`](ControlPlane::binaries) and
    /// [`cluster`](ControlPlane::cluster).
    ///
    /// # Cancel safety
    /// Safe to drop; the namespace of the test may then stay.
    pub async fn from_env() -> Result<Self, TestError> {
        let variable = |name: &str| env::var(name).ok();
        let plane = match Choice::read(variable)? {
            Choice::Embedded => Self::embedded(),
            Choice::Binaries => Self::binaries().await,
            Choice::Cluster => Self::cluster().await,
        }?;
        Ok(match choice::operators_as_admin(variable) {
            true => plane.operators_as_admin(),
            false => plane,
        })
    }

    fn new((backend, client): (Backend, RestClient)) -> Self {
        let namespace = client.kube().default_namespace().to_owned();
        Self {
            timeout: backend.default_timeout(),
            rights: OperatorRights::default(),
            own_certificates: None,
            inner: Arc::new(Inner {
                backend,
                client,
                namespace,
                log: ReconcileLog::default(),
                metrics: Mutex::default(),
                stop: CancellationToken::new(),
                tasks: TaskTracker::new(),
                cluster_scope_lock: Mutex::default(),
                failures: Arc::default(),
                denials: Denials::default(),
                prefixes: Mutex::default(),
                cluster_roles: Mutex::default(),
                webhook_configurations: Mutex::default(),
            }),
        }
    }

    /// Declares that the rest of the test needs `capability`. If the control plane lacks the
    /// capability, `?` ends the test, which then counts as skipped: `SKIPPED name: reason` is
    /// printed.
    ///
    /// # Errors
    /// [`TestError::Skipped`] if the control plane lacks the capability.
    pub fn require(&self, capability: Capability) -> Result<(), TestError> {
        match self.inner.backend.lacks(capability) {
            None => Ok(()),
            Some(reason) => Err(TestError::Skipped {
                reason: reason.to_owned(),
            }),
        }
    }

    /// Returns the path of the control plane's own kubectl, if there is one.
    #[must_use]
    pub fn kubectl(&self) -> Option<&Path> {
        self.inner.backend.kubectl()
    }

    /// Returns the path of the audit log in which the server counts what really arrives: one event
    /// of `audit.k8s.io/v1` on each line, for each create, update, patch and deletion by any
    /// client. Events have metadata only; those of deletions also have the options of the deletion.
    /// `None` unless the control plane is [real binaries](ControlPlane::binaries).
    #[must_use]
    pub fn audit_log(&self) -> Option<PathBuf> {
        self.inner.backend.audit_log()
    }

    /// Returns a client of this control plane, whose default namespace is the test's.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.inner.client.kube()
    }

    /// Serves this control plane over HTTPS to other processes, and returns a kubeconfig for the
    /// control plane. A control plane that already listens keeps its address.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn listen(&self, address: SocketAddr) -> Result<String> {
        let Inner {
            backend, namespace, ..
        } = &*self.inner;
        Ok(backend.listen(address, namespace).await?)
    }

    /// Returns the namespace of the test. Objects without a namespace are created in this
    /// namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Returns the log of all reconciles of the operators that were started on this control plane.
    #[must_use]
    pub fn reconciles(&self) -> &ReconcileLog {
        &self.inner.log
    }

    /// Installs the CRDs of an operator and runs the operator until the test ends; returns once the
    /// operator reconciles and its webhooks are called. On a cluster, the test of an operator with
    /// webhooks is skipped, because the cluster cannot reach them. On a shared control plane the
    /// operator watches only the namespace of the test. The operator's own flags have their
    /// defaults; neither the arguments nor the environment of the test process set them.
    ///
    /// The operator acts as a ServiceAccount with the roles that its command `manifests` prints. If
    /// one of its requests is denied, the test fails with an error that names the request; see
    /// [`operators_as_admin`](ControlPlane::operators_as_admin) and
    /// [`expect_denials`](ControlPlane::expect_denials).
    ///
    /// # Errors
    /// If a CRD is refused or the operator does not start.
    pub async fn start(&self, operator: Operator) -> Result {
        self.start_with(operator, [""; 0]).await
    }

    /// Starts an operator as [`start`](ControlPlane::start) does, with values of the operator's own
    /// [flags](Operator::args), as on a command line.
    ///
    /// # Examples
    /// ```
    /// # use opkit_envtest::ControlPlane;
    /// # use opkit_controller::Result;
    /// # use opkit_operator::{Operator, clap};
    /// # #[derive(clap::Args)]
    /// # struct Settings {
    /// #     #[arg(long)]
    /// #     store_url: String,
    /// # }
    /// # fn operator() -> Operator {
    /// #     Operator::new("bucket-operator").args::<Settings>()
    /// # }
    /// # async fn example(plane: ControlPlane) -> Result {
    /// plane.start_with(operator(), ["--store-url", "http://store"]).await?;
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    ///
    /// # Errors
    /// If a flag is not one of the operator's own flags, if a required flag is missing, if a CRD is
    /// refused, or if the operator does not start.
    pub async fn start_with<A>(&self, operator: Operator, args: A) -> Result
    where
        A: IntoIterator<Item: Into<OsString>>,
    {
        self.install(&operator).await?;
        let mut options = self.run_options();
        options.args = args.into_iter().map(Into::into).collect();
        let webhooks = self.prepare_webhooks(&operator, &mut options)?;
        let mut is_ready = options.ready.subscribe();
        self.run(operator, options).await?;
        if let Some(webhooks) = &webhooks {
            self.register_conversion(webhooks, &mut is_ready).await?;
        }
        // An error means that the operator has stopped, and its failure is recorded.
        let _ = is_ready.wait_for(|ready| *ready).await;
        self.check_operators()?;
        match webhooks {
            Some(webhooks) => self.register_webhooks(webhooks).await,
            None => Ok(()),
        }
    }

    /// Returns the options with which the operators of this test run.
    fn run_options(&self) -> RunOptions {
        let mut options = RunOptions::default();
        self.inner.metrics.lock().push(options.metrics.clone());
        options.log = self.inner.log.clone();
        options.grace_period = GRACE;
        options.leader_election_namespace = Some(self.inner.namespace.clone());
        if self.inner.backend.is_shared() {
            options.namespaces = vec![self.inner.namespace.clone()];
        }
        options.preflight = self.rights.withheld.is_empty();
        options
    }

    /// Runs an operator until the test ends.
    async fn run(&self, operator: Operator, options: RunOptions) -> Result {
        let (name, ready) = (operator.name().to_owned(), options.ready.clone());
        let client = self.operator_client(&operator, &options).await?;
        let stop = self.inner.stop.clone();
        let failures = self.inner.failures.clone();
        self.inner.tasks.spawn(async move {
            let outcome = operator.run_with(client, options, stop.clone()).await;
            let cause = match outcome {
                Err(error) => error.to_string(),
                Ok(()) if stop.is_cancelled() => return,
                Ok(()) => "it stopped without an error".to_owned(),
            };
            failures.lock().push(TestError::Operator { name, cause });
            // Dropped after the failure is recorded, so that a waiting test finds it.
            drop(ready);
        });
        Ok(())
    }

    /// Applies an object as a user would. An object without a namespace gets the namespace of the
    /// test.
    ///
    /// # Errors
    /// If the server refuses the object.
    pub async fn apply<K: Object>(&self, object: K) -> Result<K> {
        let kind = Kind::of::<K>();
        let key = self.key::<K>(ObjectKey::of(object.meta()));
        let mut body = serde_json::to_value(&object)?;
        if let Some(body) = body.as_object_mut() {
            body.insert("apiVersion".to_owned(), kind.api_version().into());
            body.insert("kind".to_owned(), kind.kind.clone().into());
        }
        let options = WriteOptions::for_manager(MANAGER).force();
        let response = self
            .inner
            .client
            .patch(&kind, &key, None, Patch::Apply(&body), &options)
            .await;
        let what = || format!("apply {} {key}", kind.kind);
        decode(
            &kind,
            &key,
            &response.map_err(|cause| refused(what(), cause))?,
        )
    }

    /// Returns an object, or `None` if it does not exist.
    ///
    /// # Errors
    /// If the request fails for another reason than a missing object.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<K>> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        match self.inner.client.get(&kind, &key).await {
            Ok(bytes) => decode(&kind, &key, &bytes).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(cause) => Err(refused(format!("get {} {key}", kind.kind), cause).into()),
        }
    }

    /// Deletes an object; its dependents are deleted in the background.
    ///
    /// # Errors
    /// If the object does not exist, or the server refuses the request.
    pub async fn delete<K: Object>(&self, key: impl Into<ObjectKey>) -> Result {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let options = DeleteOptions::background();
        let deleted = self.inner.client.delete(&kind, &key, &options).await;
        deleted.map_err(|cause| refused(format!("delete {} {key}", kind.kind), cause))?;
        Ok(())
    }

    /// Stops the operators, then the control plane. On a shared control plane only the namespace of
    /// the test is deleted.
    ///
    /// # Errors
    /// If an operator stopped early or with an error, if a request of an operator was denied, or if
    /// the namespace is not deleted in time.
    pub async fn shutdown(self) -> Result {
        let Inner {
            backend, client, ..
        } = &*self.inner;
        // The deletion of the namespace deletes the operators' roles too.
        let unexpected = self.inner.denials.end();
        // Before the operators stop: objects with their finalizers could not be deleted without
        // them.
        let removed = backend.remove_namespace(client).await;
        let unregistered = self.remove_webhooks().await;
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        let revoked = self.remove_cluster_roles().await;
        if let Backend::Embedded(server) = backend {
            server.shutdown().await;
        }
        self.inner.cluster_scope_lock.lock().take();
        self.check_operators()?;
        if !unexpected.is_empty() {
            return Err(TestError::Denied { report: unexpected }.into());
        }
        removed?;
        unregistered?;
        Ok(revoked?)
    }

    /// Runs a test. If a process of the control plane ends meanwhile, the test fails with an error
    /// about that process.
    pub(crate) async fn guard(&self, test: impl Future<Output = Result>) -> Result {
        let outcome = tokio::select! {
            outcome = test => outcome,
            died = self.inner.backend.died() => return Err(died.into()),
        };
        match outcome {
            Err(error) if !is_skip(&error) => Err(self.inner.backend.cause_of(error).await),
            outcome => outcome,
        }
    }

    fn check_operators(&self) -> Result {
        match self.inner.failures.lock().pop() {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    fn key<K: Object>(&self, key: impl Into<ObjectKey>) -> ObjectKey {
        let namespace = Kind::of::<K>()
            .namespaced
            .then_some(self.inner.namespace.as_str());
        key.into().or_namespace(namespace)
    }
}

fn decode<K: Object>(kind: &Kind, key: &ObjectKey, bytes: &[u8]) -> Result<K> {
    let object = || format!("{} {key}", kind.kind);
    Ok(
        serde_json::from_slice(bytes).map_err(|cause| TestError::Decode {
            object: object(),
            cause,
        })?,
    )
}

pub(crate) fn is_skip(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(TestError::Skipped { .. }))
}
