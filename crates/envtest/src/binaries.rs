//! Real Kubernetes: etcd, kube-apiserver and, if installed, kube-controller-manager, as processes.
//!
//! The processes are started once per test process, on loopback ports and in a temporary directory,
//! and all tests of that process share them. A [`watchdog`] stops the processes when the test
//! process ends. There is no scheduler and no kubelet; [`kubelet`] simulates both.

mod arguments;
mod assets;
mod error;
mod kubelet;
mod watchdog;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{env, fs};

use kube::config::{KubeConfigOptions, Kubeconfig};
use opkit_client::RestClient;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use assets::Assets;
pub use error::BinariesError;

use arguments::Ports;
use watchdog::{Ended, Watchdog};

#[cfg(test)]
mod tests;

/// Time limit for the server to become ready. A start takes seconds, and longer on a busy machine.
const READY_MAX: Duration = Duration::from_secs(120);
/// Interval between two readiness requests.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of attempts to start, each with new ports. An attempt fails if another process
/// takes one of the ports first.
const START_ATTEMPTS: usize = 3;

/// Configurations of the authentication and authorization webhooks of a server, in the format of a
/// kubeconfig.
#[derive(Debug)]
pub(crate) struct AuthWebhooks {
    pub(crate) authentication: String,
    pub(crate) authorization: String,
}

/// Control plane of real processes.
#[derive(Debug)]
pub(crate) struct Binaries {
    watchdog: Watchdog,
    ports: Ports,
    token: String,
    assets: Assets,
    /// Tasks of the simulated kubelet.
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Returns the control plane that the tests of this process share. The first call starts the
/// control plane. The watchdog stops it when this process ends.
pub(crate) async fn shared() -> Result<Arc<Binaries>, Arc<BinariesError>> {
    static RUNTIME: OnceLock<Result<Runtime, Arc<BinariesError>>> = OnceLock::new();
    static SHARED: OnceCell<Result<Arc<Binaries>, Arc<BinariesError>>> = OnceCell::const_new();
    // Each test has its own runtime, which ends with it; this one stays.
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("opkit-control-plane")
            .enable_all()
            .build()
            .map_err(|cause| runtime_failed(&cause))
    });
    let runtime = runtime.as_ref().map_err(Arc::clone)?;
    let start = async || {
        let started = runtime.spawn(async {
            let assets = Assets::find(|name| env::var(name).ok()).map_err(|error| *error)?;
            Binaries::start(assets, None).await
        });
        match started.await {
            Ok(started) => started.map(Arc::new).map_err(Arc::new),
            Err(panic) => Err(runtime_failed(&panic)),
        }
    };
    SHARED.get_or_init(start).await.clone()
}

fn runtime_failed(cause: &dyn std::error::Error) -> Arc<BinariesError> {
    let cause = cause.to_string();
    Arc::new(BinariesError::Runtime { cause })
}

impl Binaries {
    /// Starts a control plane on free ports and waits until it is ready.
    pub(crate) async fn start(
        assets: Assets,
        webhooks: Option<&AuthWebhooks>,
    ) -> Result<Self, BinariesError> {
        for _ in 1..START_ATTEMPTS {
            let ports = Ports::free().map_err(|cause| BinariesError::Port { cause })?;
            match Self::start_on(assets.clone(), ports, webhooks).await {
                // The log of an attempt that is repeated is not needed.
                Err(BinariesError::PortTaken { log, .. }) => {
                    let _ = log.parent().map(fs::remove_dir_all);
                }
                started => return started,
            }
        }
        let ports = Ports::free().map_err(|cause| BinariesError::Port { cause })?;
        Self::start_on(assets, ports, webhooks).await
    }

    async fn start_on(
        assets: Assets,
        ports: Ports,
        webhooks: Option<&AuthWebhooks>,
    ) -> Result<Self, BinariesError> {
        let name = format!("opkit-control-plane-{}", random());
        let watchdog = Watchdog::start(env::temp_dir().join(name)).await?;
        let plane = Self {
            watchdog,
            ports,
            token: format!("{}{}", random(), random()),
            assets,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        match plane.become_ready(webhooks).await {
            Ok(()) => Ok(plane),
            Err(error) => {
                plane.end(true).await;
                Err(error)
            }
        }
    }

    async fn become_ready(&self, webhooks: Option<&AuthWebhooks>) -> Result<(), BinariesError> {
        let directory = self.watchdog.directory();
        let key = rcgen::KeyPair::generate().map_err(|cause| BinariesError::Key {
            cause: cause.to_string(),
        })?;
        self.watchdog.write("sa.key", &key.serialize_pem())?;
        self.watchdog.write("sa.pub", &key.public_key_pem())?;
        let tokens = format!("{},admin,admin,\"system:masters\"\n", self.token);
        self.watchdog.write("tokens.csv", &tokens)?;
        let kubeconfig = self.kubeconfig("default");
        self.watchdog.write("kubeconfig", &kubeconfig)?;

        let Assets {
            etcd,
            apiserver,
            controller_manager,
            ..
        } = &self.assets;
        let arguments = arguments::etcd(directory, self.ports);
        self.watchdog.run("etcd", etcd, &arguments).await?;
        if let Some(webhooks) = webhooks {
            let (authentication, authorization) =
                (&webhooks.authentication, &webhooks.authorization);
            self.watchdog
                .write(arguments::AUTHENTICATION, authentication)?;
            self.watchdog
                .write(arguments::AUTHORIZATION, authorization)?;
        }
        self.watchdog
            .write(arguments::AUDIT_POLICY, arguments::AUDITED)?;
        let has_shards = self.assets.has_shards();
        let arguments = arguments::apiserver(directory, self.ports, has_shards, webhooks.is_some());
        self.watchdog
            .run("kube-apiserver", apiserver, &arguments)
            .await?;
        self.wait_until_ready().await?;
        if let Some(controller_manager) = controller_manager {
            let arguments = arguments::controller_manager(directory, self.ports);
            self.watchdog
                .run("kube-controller-manager", controller_manager, &arguments)
                .await?;
        }
        let client = self.client("default").await;
        let client = RestClient::new(client.map_err(|last| self.not_ready(last))?);
        kubelet::register(&client)
            .await
            .map_err(|cause| BinariesError::Node {
                cause: Box::new(cause),
            })?;
        self.tasks.spawn(kubelet::run(client, self.stop.clone()));
        self.tasks.close();
        Ok(())
    }

    /// Waits until the server reports that it is ready.
    async fn wait_until_ready(&self) -> Result<(), BinariesError> {
        let deadline = Instant::now() + READY_MAX;
        loop {
            if let Some(error) = self.ended() {
                return Err(error);
            }
            let last = match self.is_ready().await {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if Instant::now() >= deadline {
                return Err(self.not_ready(last));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Sends one readiness request. The error is a text for people.
    async fn is_ready(&self) -> Result<(), String> {
        // The server writes its certificate when it starts; before that no request can succeed.
        if !arguments::authority(self.watchdog.directory()).exists() {
            return Err("the server has not written its certificate yet".to_owned());
        }
        let client = self.client("default").await?;
        let request = http::Request::get("/readyz").body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        match tokio::time::timeout(READY_MAX, client.request_text(request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(late) => Err(late.to_string()),
        }
    }

    fn not_ready(&self, last: String) -> BinariesError {
        BinariesError::NotReady {
            timeout: READY_MAX,
            last,
            log: self.watchdog.log("kube-apiserver"),
        }
    }

    /// Returns a client on the current runtime, with `namespace` as the default namespace.
    pub(crate) async fn client(&self, namespace: &str) -> Result<kube::Client, String> {
        self.client_with_token(namespace, &self.token).await
    }

    /// Returns a client as [`client`](Self::client) does, for the user of a bearer token.
    pub(crate) async fn client_with_token(
        &self,
        namespace: &str,
        token: &str,
    ) -> Result<kube::Client, String> {
        let kubeconfig =
            arguments::kubeconfig(self.watchdog.directory(), self.ports, token, namespace);
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig);
        let kubeconfig = kubeconfig.map_err(|error| error.to_string())?;
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(|error| error.to_string())?;
        let client = opkit_client::ClientOptions::default().client(config);
        client.map_err(|error| opkit_client::one_line(&error))
    }

    /// Returns a kubeconfig for other processes.
    pub(crate) fn kubeconfig(&self, namespace: &str) -> String {
        arguments::kubeconfig(
            self.watchdog.directory(),
            self.ports,
            &self.token,
            namespace,
        )
    }

    /// Returns the path of the audit log of kube-apiserver.
    pub(crate) fn audit_log(&self) -> PathBuf {
        arguments::audit_log(self.watchdog.directory())
    }

    /// Reports whether lists and watches can select a shard.
    pub(crate) fn has_shards(&self) -> bool {
        self.assets.has_shards()
    }

    /// Reports whether kube-controller-manager runs, which creates Pods of Deployments and collects
    /// garbage.
    pub(crate) fn has_controller_manager(&self) -> bool {
        self.assets.controller_manager.is_some()
    }

    /// Starts a second API server beside this one, without kube-controller-manager, which asks
    /// authentication and authorization webhooks.
    pub(crate) async fn second(&self, webhooks: &AuthWebhooks) -> Result<Self, BinariesError> {
        let mut assets = self.assets.clone();
        assets.controller_manager = None;
        Self::start(assets, Some(webhooks)).await
    }

    /// Returns the path of the kubectl beside the other executables.
    pub(crate) fn kubectl(&self) -> Option<&Path> {
        self.assets.kubectl.as_deref()
    }

    /// Returns the reason why the control plane stopped, or `None` while it runs.
    pub(crate) fn ended(&self) -> Option<BinariesError> {
        let ended = self.watchdog.ended().borrow().clone()?;
        let log = self.watchdog.log(&ended.name);
        Some(exit_error(ended, log))
    }

    /// Waits until a process of the control plane ends.
    pub(crate) async fn died(&self) -> BinariesError {
        let mut ended: watch::Receiver<_> = self.watchdog.ended();
        // An error means that the watchdog's task has ended and will not report.
        let _ = ended.wait_for(Option::is_some).await;
        match self.ended() {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Stops the processes and removes their directory, except the logs if `keep_logs` is set.
    pub(crate) async fn end(&self, keep_logs: bool) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.watchdog.end(keep_logs).await;
    }
}

fn exit_error(ended: Ended, log: PathBuf) -> BinariesError {
    let text = fs::read(&log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let Ended { name, code } = ended;
    if text.contains("address already in use") {
        return BinariesError::PortTaken { name, log };
    }
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    BinariesError::Ended {
        name,
        code,
        last: last.to_owned(),
        log,
    }
}

/// Returns sixteen random letters that cannot be guessed; the standard library seeds its hashers
/// from the operating system.
pub(crate) fn random() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
