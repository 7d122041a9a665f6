//! The servers: `opkit cluster up`, and kube-apiserver with etcd.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use opkit_benches::https::{Address, Connection, JSON};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Time limit for the start of a server.
const READY_MAX: Duration = Duration::from_secs(60);

/// The program that starts a server.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// The executable `opkit`.
    Opkit(PathBuf),
    /// The executable `xtask`, which starts kube-apiserver and etcd.
    Real(PathBuf),
}

/// A server that is stopped when this is dropped.
pub(crate) struct Server {
    /// The process that was started; killed when it is dropped.
    process: Child,
    /// The processes whose memory counts.
    ids: Vec<u32>,
    pub(crate) address: Address,
    /// Time from the start of the process to its first response.
    pub(crate) ready: Duration,
}

/// The line that `xtask bench real-server` prints.
#[derive(Deserialize)]
struct Real {
    kubeconfig: PathBuf,
    processes: Vec<u32>,
}

impl Server {
    pub(crate) async fn start(program: &Program, directory: &Path) -> Result<Self> {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory)?;
        match program {
            Program::Opkit(executable) => Self::opkit(executable, directory).await,
            Program::Real(executable) => Self::real(executable, directory).await,
        }
    }

    async fn opkit(executable: &Path, directory: &Path) -> Result<Self> {
        let kubeconfig = directory.join("kubeconfig");
        let began = Instant::now();
        let process = Command::new(executable)
            .args(["cluster", "up", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start opkit")?;
        let address = loop {
            match address(&kubeconfig) {
                Ok(address) => break address,
                Err(error) if began.elapsed() > READY_MAX => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        respond(&address).await?;
        let ready = began.elapsed();
        let ids = process.id().into_iter().collect();
        Ok(Self {
            process,
            ids,
            address,
            ready,
        })
    }

    async fn real(executable: &Path, directory: &Path) -> Result<Self> {
        let began = Instant::now();
        let mut process = Command::new(executable)
            .args(["bench", "real-server"])
            .arg(directory)
            // The servers end when this pipe is closed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start xtask")?;
        let output = process.stdout.take().context("xtask has no output")?;
        let mut lines = BufReader::new(output).lines();
        let real: Real = loop {
            let line = lines.next_line().await?;
            let line = line.context("the real API server did not start")?;
            if line.starts_with('{') {
                break serde_json::from_str(&line)?;
            }
        };
        let address = address(&real.kubeconfig)?;
        respond(&address).await?;
        let ready = began.elapsed();
        Ok(Self {
            process,
            ids: real.processes,
            address,
            ready,
        })
    }

    /// Returns the resident memory of the server in bytes.
    pub(crate) fn memory(&self) -> Result<u64> {
        let mut kilobytes = 0;
        for id in &self.ids {
            let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
            let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let resident = resident.and_then(|line| line.split_whitespace().next());
            kilobytes += resident.context("the server has ended")?.parse::<u64>()?;
        }
        Ok(kilobytes * 1024)
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(mut self) -> Result<()> {
        match self.process.stdin.take() {
            Some(pipe) => drop(pipe),
            None => self.process.start_kill()?,
        }
        self.process.wait().await?;
        Ok(())
    }
}

/// Returns the address and the token in a kubeconfig.
fn address(path: &Path) -> Result<Address> {
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    let text = |pointer: &str| {
        let text = config.pointer(pointer).and_then(Value::as_str);
        text.with_context(|| format!("the kubeconfig has no {pointer}"))
    };
    let host = text("/clusters/0/cluster/server")?.strip_prefix("https://");
    Ok(Address {
        host: host
            .context("the server is not at an https URL")?
            .to_owned(),
        token: text("/users/0/user/token")?.to_owned(),
    })
}

/// Waits for a response of the server.
async fn respond(address: &Address) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let path = "/api/v1/namespaces/default";
    let began = Instant::now();
    loop {
        let (code, _) = connection.get(path, JSON).await?;
        if code == 200 {
            return Ok(());
        }
        ensure!(began.elapsed() < READY_MAX, "{path}: {code}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
