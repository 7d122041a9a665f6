//! A replica of the operator as a process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Running replica, which is killed at the latest when the test ends.
pub(crate) struct Process {
    child: Mutex<Option<Child>>,
    id: u32,
    address: SocketAddr,
    health: SocketAddr,
}

/// Returns an address with a port that no server uses.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

impl Process {
    /// Starts the operator as the pod `name`, with further arguments.
    pub(crate) fn start(name: &str, arguments: impl FnOnce(&mut Command)) -> Self {
        let (address, health) = (free(), free());
        let mut command = Command::new(env!("CARGO_BIN_EXE_shop-operator"));
        command
            .env_remove("KUBECONFIG")
            .env("HOSTNAME", name)
            .args(["--webhook-port", &address.port().to_string()])
            .args(["--health-probe-bind-address", &health.to_string()])
            .args(["--log-level", "warn"])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        arguments(&mut command);
        let child = command.spawn().unwrap();
        Self {
            id: child.id().unwrap(),
            child: Mutex::new(Some(child)),
            address,
            health,
        }
    }

    /// Returns the address of the webhooks.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until `/readyz` succeeds: the webhooks have a certificate.
    pub(crate) async fn wait_until_ready(&self) {
        let ready = async {
            while !self.is_ready().await.unwrap_or_default() {
                sleep(Duration::from_millis(50)).await;
                let exit = self.child.lock().unwrap().as_mut().map(Child::try_wait);
                let is_running = exit.is_none_or(|exit| matches!(exit, Ok(None)));
                assert!(is_running, "the replica has ended");
            }
        };
        let ready = timeout(Duration::from_secs(60), ready).await;
        assert!(ready.is_ok(), "the replica is not ready in time");
    }

    async fn is_ready(&self) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(self.health).await?;
        let request = b"GET /readyz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok(response.starts_with("HTTP/1.1 200 "))
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends SIGKILL: the process cannot finish anything.
    pub(crate) fn kill(&self) {
        self.signal("-KILL");
    }

    fn signal(&self, signal: &str) {
        let mut kill = std::process::Command::new("kill");
        let sent = kill.args([signal, &self.id.to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the process ends, and returns its exit code.
    pub(crate) async fn wait(&self) -> Option<i32> {
        let child = self.child.lock().unwrap().take();
        child.unwrap().wait().await.unwrap().code()
    }
}
