//! `cargo xtask bench cache|controller|server|webhook`: benchmarks of a crate and of its peers.
//!
//! A benchmark prints a table, and draws a chart of it; `cargo xtask bench charts` draws those of
//! BENCHMARKS.md.
//!
//! kube-runtime is a peer in its own workspace; client-go and controller-runtime are Go modules;
//! all are in `benches/peers`. If a peer cannot be built, its rows are marked as absent and not
//! counted.

mod chart;
mod server;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use self::server::Server;
use crate::{build, control_plane};

/// Benchmark to run, and its options.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, clap::Subcommand)]
enum Subject {
    /// Benchmark the cache: first sync, memory, events and reads
    Cache(Cache),
    /// Draw the charts of the tables in BENCHMARKS.md
    Charts,
    /// Benchmark the controller: its queue, reconciles, latency, and the smallest operator
    Controller(Controller),
    /// Benchmark the API server as a process: writes, reads, lists, memory
    Server(ServerArgs),
    /// Benchmark a webhook server: latency, throughput, conversion, memory
    Webhook(Options),
    /// Run the real API server until standard input ends
    #[command(hide = true)]
    RealServer {
        /// Directory for its files
        directory: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Options {
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
    /// Run a smaller benchmark once, to check that it works
    #[arg(long)]
    quick: bool,
    /// Number of repetitions
    #[arg(long)]
    repetitions: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct Cache {
    #[command(flatten)]
    options: Options,
    /// Skip the real API server
    #[arg(long)]
    no_real: bool,
}

#[derive(Debug, clap::Args)]
struct Controller {
    #[command(flatten)]
    options: Options,
    /// Skip the real API server, and with it the smallest operators
    #[arg(long)]
    no_real: bool,
    /// Run only measurements whose names contain this text, such as `burst`
    #[arg(long)]
    only: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ServerArgs {
    #[command(flatten)]
    options: Options,
    /// Skip the real API server
    #[arg(long)]
    no_real: bool,
    /// Run only measurements whose names contain this text, such as `pods`
    #[arg(long)]
    only: Option<String>,
}

impl Options {
    fn add_to(&self, command: &mut Command) {
        if self.json {
            command.arg("--json");
        }
        if self.quick {
            command.arg("--quick");
        }
        if let Some(repetitions) = self.repetitions {
            command.args(["--repetitions", &repetitions.to_string()]);
        }
    }
}

/// Builds opkit's benchmark and the peers, and runs them.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let root = metadata.workspace_root.as_std_path();
    let target = metadata.target_directory.as_std_path();
    let peers = target.join("peers");
    let (program, options, no_real) = match &args.subject {
        Subject::Cache(cache) => ("bench-cache", &cache.options, cache.no_real),
        Subject::Controller(controller) => {
            ("bench-controller", &controller.options, controller.no_real)
        }
        Subject::Server(server) => return api_server(root, target, server),
        Subject::Webhook(options) => return webhook(root, target, options),
        Subject::Charts => {
            chart::draw_all(root)?;
            return Ok(ExitCode::SUCCESS);
        }
        Subject::RealServer { directory } => return real_server(directory),
    };
    let package = ["--package", "opkit-benches", "--bin", program];
    cargo(root, target, "release", &package)?;
    let mut command = Command::new(target.join("release").join(program));
    command.arg("run");
    options.add_to(&mut command);
    command
        .arg("--kube-runtime")
        .arg(kube_runtime(root, &peers)?);
    let go = match &args.subject {
        Subject::Cache(_) => vec![("client-go", "client-go", ".")],
        Subject::Controller(controller) => {
            // It serves the replicas that divide objects.
            let package = ["--package", "opkit-cli", "--bin", "opkit"];
            cargo(root, target, "release", &package)?;
            command
                .arg("--opkit")
                .arg(target.join("release/opkit"))
                .arg("--minimal")
                .arg(operator(root, target, "minimal")?);
            if let Some(only) = &controller.only {
                command.args(["--only", only]);
            }
            vec![
                ("controller-runtime", "controller-runtime", "."),
                (
                    "controller-runtime-minimal",
                    "controller-runtime",
                    "./minimal",
                ),
            ]
        }
        Subject::Server(_) | Subject::Webhook(_) | Subject::Charts | Subject::RealServer { .. } => {
            Vec::new()
        }
    };
    for (name, module, package) in go {
        if let Some(peer) = go_peer(root, &peers, name, module, package)? {
            command.arg(format!("--{name}")).arg(peer);
        }
    }
    let server = match no_real {
        true => None,
        false => real(&peers),
    };
    if let Some(server) = &server {
        command.arg("--kubeconfig").arg(server.kubeconfig());
    }
    measure(command, target, program.trim_start_matches("bench-"))
}

/// Builds `opkit` and the benchmark of the API server, and runs the benchmark.
fn api_server(root: &Path, target: &Path, args: &ServerArgs) -> Result<ExitCode> {
    let package = ["--package", "opkit-benches", "--bin", "bench-server"];
    cargo(root, target, "release", &package)?;
    let package = ["--package", "opkit-cli", "--bin", "opkit"];
    cargo(root, target, "release", &package)?;
    let release = target.join("release");
    let mut command = Command::new(release.join("bench-server"));
    command
        .arg("run")
        .arg("--opkit")
        .arg(release.join("opkit"))
        .arg("--directory")
        .arg(target.join("peers/servers"));
    args.options.add_to(&mut command);
    if let Some(only) = &args.only {
        command.args(["--only", only]);
    }
    if !args.no_real {
        match control_plane::ensure(None) {
            // This program starts the real API server, once for each measurement.
            Ok(_) => {
                command.arg("--real").arg(std::env::current_exe()?);
            }
            Err(error) => note(&format!("{error:#}: the real API server is not measured")),
        }
    }
    measure(command, target, "server")
}

/// Builds the operator with webhooks, its peer and the benchmark, and runs the benchmark.
fn webhook(root: &Path, target: &Path, options: &Options) -> Result<ExitCode> {
    let package = ["--package", "opkit-benches", "--bin", "bench-webhook"];
    cargo(root, target, "release", &package)?;
    let (release, peers) = (target.join("release"), target.join("peers"));
    let Some(server) = real(&peers) else {
        anyhow::bail!("the operator needs an API server");
    };
    let mut command = Command::new(release.join("bench-webhook"));
    command
        .arg("run")
        .arg("--operator")
        .arg(operator(root, target, "webhooks")?)
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .arg("--directory")
        .arg(peers.join("webhooks"));
    options.add_to(&mut command);
    let name = "controller-runtime-webhook";
    if let Some(peer) = go_peer(root, &peers, name, "controller-runtime", "./webhook")? {
        command.arg(format!("--{name}")).arg(peer);
    }
    measure(command, target, "webhook")
}

/// Runs a benchmark, passes on its output, and draws a chart of the table in it.
fn measure(mut command: Command, target: &Path, subject: &str) -> Result<ExitCode> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run the bench")?;
    let output = child.stdout.take().context("the bench has no output")?;
    let mut printed = String::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("cannot read the output of the bench")?;
        println!("{line}");
        printed.push_str(&line);
        printed.push('\n');
    }
    let status = child.wait().context("cannot wait for the bench")?;
    let path = target.join("bench").join(format!("{subject}.svg"));
    if chart::draw_run(subject, &printed, &path)? {
        note(&format!("chart: {}", path.display()));
    }
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs the real API server until standard input ends. Prints its kubeconfig and the ids of its
/// processes as a line of JSON.
fn real_server(directory: &Path) -> Result<ExitCode> {
    let executables = control_plane::ensure(None)?;
    let server = Server::start(&executables, directory)?;
    let line = serde_json::json!({
        "kubeconfig": server.kubeconfig(), "processes": server.processes(),
    });
    println!("{line}");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints progress to standard error: standard output has only the figures.
fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn cargo(directory: &Path, target: &Path, profile: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "--profile", profile])
        .args(arguments)
        .arg("--target-dir")
        .arg(target)
        .current_dir(directory);
    let status = command.status().context("cannot run cargo build")?;
    ensure!(status.success(), "cargo build {arguments:?} failed");
    Ok(())
}

/// Builds an operator as small as its peers in Go: with the profile for small operators, and linked
/// statically. Returns the path of its executable.
fn operator(root: &Path, target: &Path, program: &str) -> Result<PathBuf> {
    let host = build::host()?;
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "--profile", "operator"])
        .args(["--package", "opkit-benches", "--bin", program])
        // With a target, the flags do not apply to build scripts and macros.
        .args(["--target", &host])
        .arg("--target-dir")
        .arg(target)
        .env("RUSTFLAGS", build::STATIC_FLAGS)
        .current_dir(root);
    let status = command.status().context("cannot run cargo build")?;
    ensure!(status.success(), "cargo build of {program} failed");
    Ok(target.join(host).join("operator").join(program))
}

fn kube_runtime(root: &Path, peers: &Path) -> Result<PathBuf> {
    cargo(
        &root.join("benches/peers/kube-runtime"),
        peers,
        "release",
        &["--locked"],
    )?;
    Ok(peers.join("release/peer-kube-runtime"))
}

/// Builds a package of a Go module, without symbols.
fn go_peer(
    root: &Path,
    peers: &Path,
    name: &str,
    module: &str,
    package: &str,
) -> Result<Option<PathBuf>> {
    if !control_plane::has_go() {
        note(&format!("Go is not installed: {name} is not measured"));
        return Ok(None);
    }
    let peer = peers.join(name);
    let status = Command::new("go")
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(&peer)
        .arg(package)
        .current_dir(root.join("benches/peers").join(module))
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false")
        .status()
        .context("cannot run go build")?;
    if !status.success() {
        note(&format!("go build of {name} failed: it is not measured"));
        return Ok(None);
    }
    Ok(Some(peer))
}

fn real(directory: &Path) -> Option<Server> {
    let started = control_plane::ensure(None)
        .and_then(|executables| Server::start(&executables, &directory.join("real-server")));
    match started {
        Ok(server) => Some(server),
        Err(error) => {
            note(&format!("{error:#}: the real API server is not measured"));
            None
        }
    }
}
