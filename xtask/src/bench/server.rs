//! Server of only etcd and kube-apiserver, so that no controller changes the objects of a
//! benchmark.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use crate::curl::Curl;

const TOKEN: &str = "bench-token";
/// Time limit for the start of the server.
const READY_MAX: Duration = Duration::from_secs(60);

/// Control plane that is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    processes: Vec<Child>,
    kubeconfig: PathBuf,
}

impl Server {
    /// Starts a control plane with its files in `directory`, which is emptied first.
    pub(super) fn start(executables: &Path, directory: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let [etcd, peer, port] = ports()?;
        let file = |name: &str| directory.join(name).display().to_string();
        let key = rcgen::KeyPair::generate().context("cannot generate a key")?;
        let kubeconfig = directory.join("kubeconfig");
        let url = format!("https://127.0.0.1:{port}");
        fs::write(file("sa.key"), key.serialize_pem())?;
        fs::write(file("sa.pub"), key.public_key_pem())?;
        fs::write(
            file("tokens.csv"),
            format!("{TOKEN},admin,admin,\"system:masters\"\n"),
        )?;
        fs::write(
            &kubeconfig,
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: bench\n\
                 clusters: [{{name: bench, cluster: {{server: '{url}', insecure-skip-tls-verify: true}}}}]\n\
                 users: [{{name: admin, user: {{token: '{TOKEN}'}}}}]\n\
                 contexts: [{{name: bench, context: {{cluster: bench, user: admin}}}}]\n"
            ),
        )?;
        let local = |port: u16| format!("http://127.0.0.1:{port}");
        let mut server = Self {
            processes: Vec::new(),
            kubeconfig,
        };
        let etcd_arguments = [
            format!("--data-dir={}", file("etcd")),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
            "--quota-backend-bytes=8589934592".to_owned(),
            format!("--listen-client-urls={}", local(etcd)),
            format!("--advertise-client-urls={}", local(etcd)),
            format!("--listen-peer-urls={}", local(peer)),
            format!("--initial-advertise-peer-urls={}", local(peer)),
            format!("--initial-cluster=default={}", local(peer)),
        ];
        let apiserver_arguments = [
            format!("--etcd-servers={}", local(etcd)),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", file("certs")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        server.spawn(executables, "etcd", &etcd_arguments)?;
        server.spawn(executables, "kube-apiserver", &apiserver_arguments)?;
        server.wait(&url)?;
        Ok(server)
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the ids of the processes of the server.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }

    fn spawn(&mut self, executables: &Path, name: &str, arguments: &[String]) -> Result<()> {
        let process = Command::new(executables.join(name))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        self.processes.push(process);
        Ok(())
    }

    /// Waits until the server returns its version, and then until its namespaces exist.
    fn wait(&mut self, url: &str) -> Result<()> {
        let began = SystemTime::now();
        loop {
            if Curl::new(url, TOKEN).version().is_ok() {
                return Ok(());
            }
            for process in &mut self.processes {
                if let Some(status) = process.try_wait()? {
                    bail!("the real API server ended: {status}");
                }
            }
            if began.elapsed().unwrap_or_default() > READY_MAX {
                bail!("the real API server is not ready");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns three ports that no process listens on at the moment.
fn ports() -> Result<[u16; 3]> {
    // All listeners are kept until the last port is found; otherwise a port could be returned
    // twice.
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
