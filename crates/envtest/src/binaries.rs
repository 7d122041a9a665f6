//! Real Kubernetes: etcd, kube-apiserver and, where it is there, kube-controller-manager, as
//! processes.
//!
//! They are started once per test process, on loopback ports and in a temporary directory, and
//! shared by its tests. A [`watchdog`] ends them with the process. There are no scheduler and no
//! kubelet; [`kubelet`] stands in for both.

mod arguments;
mod assets;
mod error;
mod kubelet;
mod watchdog;

use std::{
    env, fs,
    hash::{BuildHasher, Hasher, RandomState},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use kube::config::{KubeConfigOptions, Kubeconfig};
use opkit_client::RestClient;
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use assets::Assets;
pub use error::BinariesError;

use arguments::Ports;
use watchdog::{Ended, Watchdog};

#[cfg(test)]
mod tests;

/// How long the server may take to become ready. It takes seconds; a busy machine more.
const READY_MAX: Duration = Duration::from_secs(120);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(50);
/// How often other ports are tried when somebody was faster.
const ATTEMPTS: usize = 3;

/// A control plane of real processes.
#[derive(Debug)]
pub(crate) struct Binaries {
    watchdog: Watchdog,
    ports: Ports,
    token: String,
    assets: Assets,
    /// The stand-in for the kubelet.
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The one of this process. Nothing takes it down but the end of the process, which the watchdog
/// sees.
pub(crate) async fn shared() -> Result<Arc<Binaries>, Arc<BinariesError>> {
    static RUNTIME: OnceLock<Result<Runtime, Arc<BinariesError>>> = OnceLock::new();
    static SHARED: OnceCell<Result<Arc<Binaries>, Arc<BinariesError>>> = OnceCell::const_new();
    // Each test has a runtime of its own, which ends with it; this one stays.
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
            Binaries::start(assets).await
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
    /// Starts one on free ports and waits until it is ready.
    pub(crate) async fn start(assets: Assets) -> Result<Self, BinariesError> {
        for _ in 1..ATTEMPTS {
            let ports = Ports::free().map_err(|cause| BinariesError::Port { cause })?;
            match Self::start_on(assets.clone(), ports).await {
                // Nobody will ask for the log of what is tried again.
                Err(BinariesError::PortTaken { log, .. }) => {
                    let _ = log.parent().map(fs::remove_dir_all);
                }
                started => return started,
            }
        }
        let ports = Ports::free().map_err(|cause| BinariesError::Port { cause })?;
        Self::start_on(assets, ports).await
    }

    async fn start_on(assets: Assets, ports: Ports) -> Result<Self, BinariesError> {
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
        match plane.become_ready().await {
            Ok(()) => Ok(plane),
            Err(error) => {
                plane.end(true).await;
                Err(error)
            }
        }
    }

    async fn become_ready(&self) -> Result<(), BinariesError> {
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
        let arguments = arguments::apiserver(directory, self.ports, self.assets.has_shards());
        self.watchdog
            .run("kube-apiserver", apiserver, &arguments)
            .await?;
        self.answers().await?;
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

    /// Waits until the server says that it is ready.
    async fn answers(&self) -> Result<(), BinariesError> {
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
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What it says otherwise is for people only.
    async fn is_ready(&self) -> Result<(), String> {
        // The server writes it when it starts; without it there is nothing to ask.
        if !arguments::authority(self.watchdog.directory()).exists() {
            return Err("it has no certificate yet".to_owned());
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

    /// A client for the present runtime, with its default namespace.
    pub(crate) async fn client(&self, namespace: &str) -> Result<kube::Client, String> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig(namespace));
        let kubeconfig = kubeconfig.map_err(|error| error.to_string())?;
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(|error| error.to_string())?;
        let client = opkit_client::ClientOptions::default().client(config);
        client.map_err(|error| opkit_client::one_line(&error))
    }

    /// How other processes reach it.
    pub(crate) fn kubeconfig(&self, namespace: &str) -> String {
        arguments::kubeconfig(
            self.watchdog.directory(),
            self.ports,
            &self.token,
            namespace,
        )
    }

    /// Whether a list or watch may ask for a shard.
    pub(crate) fn has_shards(&self) -> bool {
        self.assets.has_shards()
    }

    /// Whether Deployments become Pods, and what nobody owns any more goes.
    pub(crate) fn has_controller_manager(&self) -> bool {
        self.assets.controller_manager.is_some()
    }

    /// The kubectl beside it.
    pub(crate) fn kubectl(&self) -> Option<&Path> {
        self.assets.kubectl.as_deref()
    }

    /// Why it does not run any more, if so.
    pub(crate) fn ended(&self) -> Option<BinariesError> {
        let ended = self.watchdog.ended().borrow().clone()?;
        let log = self.watchdog.log(&ended.name);
        Some(what_ended(ended, log))
    }

    /// Waits until it does not run any more.
    pub(crate) async fn died(&self) -> BinariesError {
        let mut ended: watch::Receiver<_> = self.watchdog.ended();
        // An error means that the watchdog is gone and nobody will tell.
        let _ = ended.wait_for(Option::is_some).await;
        match self.ended() {
            Some(error) => error,
            None => std::future::pending().await,
        }
    }

    /// Ends it and removes its directory, but for the logs if they are to be kept.
    pub(crate) async fn end(&self, keep_logs: bool) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.watchdog.end(keep_logs).await;
    }
}

fn what_ended(ended: Ended, log: PathBuf) -> BinariesError {
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

/// Sixteen letters that nobody guesses; the standard library seeds its hashers from the system.
pub(crate) fn random() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
