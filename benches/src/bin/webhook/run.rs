//! Starts the servers, one at a time, and measures them.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use opkit_benches::runs::{self, Measurement};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::rows::ROWS;

/// Programs to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// opkit's operator with webhooks
    #[arg(long)]
    operator: PathBuf,
    /// The manager of controller-runtime with webhooks
    #[arg(long)]
    controller_runtime_webhook: Option<PathBuf>,
    /// Kubeconfig of an API server for the operator
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Directory for files
    #[arg(long)]
    directory: PathBuf,
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
    /// Run a smaller benchmark once
    #[arg(long)]
    quick: bool,
    /// Number of repetitions
    #[arg(long)]
    repetitions: Option<u32>,
}

/// Time limit for the start of a server.
const START_MAX: Duration = Duration::from_secs(30);
/// Time after which a server is idle.
const SETTLE: Duration = Duration::from_secs(2);
/// Cores of the server and of the load.
const CORES: [&str; 2] = ["0", "1"];

pub(crate) fn run(args: &Args) -> Result<()> {
    let certificates = args.directory.join("certificates");
    write_certificate(&certificates)?;
    let mut measurements: Vec<Measurement<'_>> = Vec::new();
    let ours = || {
        let port = free_port()?;
        evict(&args.operator)?;
        let mut command = on_core(CORES[0], &args.operator);
        command
            .env("KUBECONFIG", &args.kubeconfig)
            .arg("run")
            .args(["--webhook-port", &port.to_string()])
            .arg("--webhook-cert-path")
            .arg(&certificates);
        measure(command, port, args.quick)
    };
    measurements.push(("ours".to_owned(), Box::new(ours)));
    if let Some(peer) = &args.controller_runtime_webhook {
        let peer = || {
            let port = free_port()?;
            evict(peer)?;
            let mut command = on_core(CORES[0], peer);
            command.arg(port.to_string()).arg(&certificates);
            measure(command, port, args.quick)
        };
        measurements.push(("controller-runtime".to_owned(), Box::new(peer)));
    }
    let repetitions = match args.quick {
        true => 1,
        false => args.repetitions.unwrap_or(5),
    };
    runs::repeat(&measurements, repetitions, args.json, ROWS);
    Ok(())
}

/// A server that is killed when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, waits until it listens, and sends the load.
fn measure(mut command: Command, port: u16, quick: bool) -> Result<Value> {
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .context("cannot start the server")?;
    let mut server = Server(process);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(idle(&mut server, port))?;
    let idle = resident(server.0.id())?;
    let mut load = on_core(CORES[1], &std::env::current_exe()?);
    load.arg("load").arg(port.to_string());
    if quick {
        load.args(["--pairs", "100", "--requests", "800", "--objects", "100"]);
    }
    let mut figures = runs::measure(&mut load)?;
    let memory = resident(server.0.id())?;
    if let Value::Object(figures) = &mut figures {
        figures.insert("idle_bytes".to_owned(), json!(idle));
        figures.insert("memory_bytes".to_owned(), json!(memory));
    }
    Ok(figures)
}

/// Waits until the server listens and is idle.
async fn idle(server: &mut Server, port: u16) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .is_err()
    {
        ensure!(server.0.try_wait()?.is_none(), "the server has ended");
        ensure!(began.elapsed() < START_MAX, "the server does not listen");
        sleep(Duration::from_millis(10)).await;
    }
    sleep(SETTLE).await;
    Ok(())
}

/// Returns a command for a program on one core.
fn on_core(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// Removes a program from the page cache, so that it is read again. Otherwise its resident memory
/// depends on how the file was written: pages that were written in large blocks are mapped in large
/// blocks, whether they are used or not.
fn evict(program: &Path) -> Result<()> {
    let mut file = OsString::from("of=");
    file.push(program);
    let mut command = Command::new("dd");
    command.args([
        "oflag=nocache",
        "conv=notrunc,fdatasync",
        "count=0",
        "status=none",
    ]);
    let status = command.arg(file).status().context("cannot run dd")?;
    ensure!(status.success(), "cannot evict {}", program.display());
    Ok(())
}

/// Returns the resident memory of a process in bytes.
fn resident(id: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|line| line.split_whitespace().next());
    let kilobytes: u64 = kilobytes.context("the server has ended")?.parse()?;
    Ok(kilobytes * 1024)
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Writes a self-signed certificate, as a mounted Secret has it.
fn write_certificate(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    std::fs::write(directory.join("tls.crt"), generated.cert.pem())?;
    std::fs::write(
        directory.join("tls.key"),
        generated.signing_key.serialize_pem(),
    )?;
    Ok(())
}
