//! The control plane that a test works with.

use std::{
    env, ffi::OsString, fmt, future::Future, net::SocketAddr, path::Path, sync::Arc, time::Duration,
};

use opkit_client::{Kind, Object, ObjectKey, Patch, RestClient};
use opkit_operator::{Error, MetricsRegistry, Operator, ReconcileLog, Result, RunOptions};
use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    backend::{Backend, Capability},
    choice::Choice,
    error::{TestError, refused},
};

mod install;
mod metrics;
mod objects;
#[cfg(test)]
mod tests;
mod waiting;

/// The field manager of what a test applies.
const MANAGER: &str = "opkit-test";
/// How long an operator gets to stop.
const GRACE: Duration = Duration::from_secs(5);

/// A control plane, with the operators that the test has started on it.
///
/// [Embedded](ControlPlane::embedded), it is the test's own. Of
/// [real binaries](ControlPlane::binaries) and on a [cluster](ControlPlane::cluster) it is shared
/// with other tests: the test has a namespace of its own, and its operators are held to it.
///
/// Cloning gives another handle on the same one. `#[opkit::test]` makes the one that
/// `OPKIT_CONTROL_PLANE` names and takes it down.
///
/// # Examples
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use opkit_envtest::ControlPlane;
/// # async fn example(plane: ControlPlane) -> opkit_operator::Result {
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
    /// How long this handle waits.
    timeout: Duration,
}

struct Inner {
    backend: Backend,
    client: RestClient,
    namespace: String,
    log: ReconcileLog,
    /// Of each operator.
    metrics: Mutex<Vec<MetricsRegistry>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Held by a test of cluster-scoped kinds on a shared control plane: no namespace keeps such
    /// tests apart.
    turn: Mutex<Option<OwnedMutexGuard<()>>>,
    /// Why an operator ended before the test did.
    failures: Arc<Mutex<Vec<TestError>>>,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane")
            .field("namespace", &self.inner.namespace)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts an embedded control plane on the present tokio runtime. [`ControlPlane::shutdown`]
    /// ends it.
    ///
    /// # Errors
    /// If it does not start.
    pub fn embedded() -> Result<Self, TestError> {
        Ok(Self::new(Backend::embedded()?))
    }

    /// A namespace on real Kubernetes: etcd, kube-apiserver and, where it is there,
    /// kube-controller-manager, started once per process and ended with it. Pods run at once on a
    /// node that is none.
    ///
    /// The executables are those of `cargo xtask control-plane`, or of `KUBEBUILDER_ASSETS` and
    /// `TEST_ASSET_*`.
    ///
    /// # Errors
    /// If an executable is missing or ends; the error names it and its log.
    ///
    /// # Cancel safety
    /// May be dropped; a namespace may then be left until the end of the process.
    pub async fn binaries() -> Result<Self, TestError> {
        Ok(Self::new(Backend::binaries().await?))
    }

    /// A namespace on the cluster of the current kubeconfig, removed by [`ControlPlane::shutdown`].
    ///
    /// # Errors
    /// If no kubeconfig leads to a cluster, or it refuses to make a namespace.
    ///
    /// # Cancel safety
    /// May be dropped; a namespace may then be left.
    pub async fn cluster() -> Result<Self, TestError> {
        Ok(Self::new(Backend::cluster().await?))
    }

    /// The one that `OPKIT_CONTROL_PLANE` (`embedded`, `binaries`, `cluster`) or else
    /// `USE_EXISTING_CLUSTER` names; embedded by default.
    ///
    /// # Errors
    /// If the variable names none, or as the function of that name.
    ///
    /// # Cancel safety
    /// As the function of that name.
    pub async fn from_env() -> Result<Self, TestError> {
        match Choice::read(|name| env::var(name).ok())? {
            Choice::Embedded => Self::embedded(),
            Choice::Binaries => Self::binaries().await,
            Choice::Cluster => Self::cluster().await,
        }
    }

    fn new((backend, client): (Backend, RestClient)) -> Self {
        let namespace = client.kube().default_namespace().to_owned();
        Self {
            timeout: backend.patience(),
            inner: Arc::new(Inner {
                backend,
                client,
                namespace,
                log: ReconcileLog::default(),
                metrics: Mutex::default(),
                stop: CancellationToken::new(),
                tasks: TaskTracker::new(),
                turn: Mutex::default(),
                failures: Arc::default(),
            }),
        }
    }

    /// Says what the rest of the test needs. Where the control plane lacks it, `?` ends the test,
    /// which counts as skipped: `SKIPPED name: reason` is printed.
    ///
    /// # Errors
    /// [`TestError::Skipped`] if the control plane lacks it.
    pub fn require(&self, capability: Capability) -> Result<(), TestError> {
        match self.inner.backend.lacks(capability) {
            None => Ok(()),
            Some(reason) => Err(TestError::Skipped {
                reason: reason.to_owned(),
            }),
        }
    }

    /// The kubectl that belongs to the control plane, if it brings one.
    #[must_use]
    pub fn kubectl(&self) -> Option<&Path> {
        self.inner.backend.kubectl()
    }

    /// A client for this control plane, whose default namespace is that of the test.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.inner.client.kube()
    }

    /// Serves this control plane over HTTPS as well, for other processes; returns a kubeconfig for
    /// it. One that is served already stays at its address.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn listen(&self, address: SocketAddr) -> Result<String> {
        let Inner {
            backend, namespace, ..
        } = &*self.inner;
        Ok(backend.listen(address, namespace).await?)
    }

    /// The namespace of the test: where objects go that name none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// Every reconcile of the operators that were started here.
    #[must_use]
    pub fn reconciles(&self) -> &ReconcileLog {
        &self.inner.log
    }

    /// Installs the CRDs of an operator and runs it until the end of the test; returns once it
    /// reconciles. On a shared control plane it is held to the namespace of the test. Flags of the
    /// operator's own have their defaults; neither the arguments of the test process nor its
    /// environment are read for them.
    ///
    /// # Errors
    /// If a CRD is refused or the operator does not start.
    pub async fn start(&self, operator: Operator) -> Result {
        self.start_with(operator, [""; 0]).await
    }

    /// As [`start`](ControlPlane::start), with values of the operator's own
    /// [flags](Operator::args), as on a command line.
    ///
    /// # Examples
    /// ```
    /// # use opkit_envtest::ControlPlane;
    /// # use opkit_operator::{Operator, Result, clap};
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
    /// If a flag is not the operator's own or a required one is missing, a CRD is refused, or the
    /// operator does not start.
    pub async fn start_with<A>(&self, operator: Operator, args: A) -> Result
    where
        A: IntoIterator<Item: Into<OsString>>,
    {
        self.install(&operator).await?;
        let name = operator.name().to_owned();
        let ready = watch::Sender::new(false);
        let mut is_ready = ready.subscribe();
        let mut options = RunOptions::default();
        options.args = args.into_iter().map(Into::into).collect();
        self.inner.metrics.lock().push(options.metrics.clone());
        options.log = self.inner.log.clone();
        options.ready = ready.clone();
        options.grace_period = GRACE;
        options.leader_election_namespace = Some(self.inner.namespace.clone());
        if self.inner.backend.is_shared() {
            options.namespaces = vec![self.inner.namespace.clone()];
        }
        let (client, stop) = (self.client(), self.inner.stop.clone());
        let failures = self.inner.failures.clone();
        self.inner.tasks.spawn(async move {
            let outcome = operator.run_with(client, options, stop.clone()).await;
            let cause = match outcome {
                Err(error) => error.to_string(),
                Ok(()) if stop.is_cancelled() => return,
                Ok(()) => "it ended".to_owned(),
            };
            failures.lock().push(TestError::Operator { name, cause });
            // Only now, so that whoever waits for it finds the failure.
            drop(ready);
        });
        // An error means that the operator has ended, and it has left a failure.
        let _ = is_ready.wait_for(|ready| *ready).await;
        self.check_operators()
    }

    /// Applies an object as a user would; one without a namespace goes into that of the test.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn apply<K: Object>(&self, object: K) -> Result<K> {
        let kind = Kind::of::<K>();
        let key = self.key::<K>(ObjectKey::of(object.meta()));
        let mut body = serde_json::to_value(&object)?;
        if let Some(body) = body.as_object_mut() {
            body.insert("apiVersion".to_owned(), kind.api_version().into());
            body.insert("kind".to_owned(), kind.kind.clone().into());
        }
        let answer = self
            .inner
            .client
            .patch(&kind, &key, None, Patch::Apply(&body), MANAGER)
            .await;
        let what = || format!("apply {} {key}", kind.kind);
        decode(
            &kind,
            &key,
            &answer.map_err(|cause| refused(what(), cause))?,
        )
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If the request fails for another reason than that there is none.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<K>> {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        match self.inner.client.get(&kind, &key).await {
            Ok(bytes) => decode(&kind, &key, &bytes).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(cause) => Err(refused(format!("get {} {key}", kind.kind), cause).into()),
        }
    }

    /// Deletes an object, with its dependents in the background.
    ///
    /// # Errors
    /// If there is none, or the server refuses.
    pub async fn delete<K: Object>(&self, key: impl Into<ObjectKey>) -> Result {
        let (kind, key) = (Kind::of::<K>(), self.key::<K>(key));
        let deleted = self.inner.client.delete(&kind, &key, None, None).await;
        deleted.map_err(|cause| refused(format!("delete {} {key}", kind.kind), cause))?;
        Ok(())
    }

    /// Stops the operators, then the control plane; a shared one only loses the namespace of the
    /// test.
    ///
    /// # Errors
    /// If an operator ended before, or with an error, or the namespace does not go.
    pub async fn shutdown(self) -> Result {
        let Inner {
            backend, client, ..
        } = &*self.inner;
        // Before the operators stop: what has their finalizers could not go without them.
        let removed = backend.remove_namespace(client).await;
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        if let Backend::Embedded(server) = backend {
            server.shutdown().await;
        }
        self.inner.turn.lock().take();
        self.check_operators()?;
        Ok(removed?)
    }

    /// Runs a test as long as the control plane runs, and says so if that is why it failed.
    pub(crate) async fn guard(&self, test: impl Future<Output = Result>) -> Result {
        let outcome = tokio::select! {
            outcome = test => outcome,
            died = self.inner.backend.died() => return Err(died.into()),
        };
        match outcome {
            Err(error) if !is_skip(&error) => Err(self.inner.backend.why(error).await),
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
