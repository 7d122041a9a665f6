//! `cargo xtask bench cache|controller`: benchmarks of a crate and of its peers.
//!
//! kube-runtime is a peer in its own workspace; client-go and controller-runtime are Go modules;
//! all are in `benches/peers`. If a peer cannot be built, its rows are marked as absent and not
//! counted.

mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use self::server::Server;
use crate::control_plane;

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
    /// Benchmark the controller: its queue, reconciles, latency, and the smallest operator
    Controller(Controller),
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
    };
    let build = |program: &str, profile: &str| {
        let package = ["--package", "opkit-benches", "--bin", program];
        cargo(root, target, profile, &package)
    };
    build(program, "release")?;
    let mut command = Command::new(target.join("release").join(program));
    command.arg("run");
    if options.json {
        command.arg("--json");
    }
    if options.quick {
        command.arg("--quick");
    }
    if let Some(repetitions) = options.repetitions {
        command.args(["--repetitions", &repetitions.to_string()]);
    }
    command
        .arg("--kube-runtime")
        .arg(kube_runtime(root, &peers)?);
    let go = match &args.subject {
        Subject::Cache(_) => vec![("client-go", "client-go", ".")],
        Subject::Controller(controller) => {
            build("minimal", "operator")?;
            command
                .arg("--minimal")
                .arg(target.join("operator/minimal"));
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
    let status = command.status().context("cannot run the bench")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
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
