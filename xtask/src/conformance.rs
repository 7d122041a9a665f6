//! `cargo xtask conformance`: the conformance suite on a control plane.
//!
//! libtest cannot skip a test while it runs, so a test that a control plane cannot run passes and
//! prints `SKIPPED name: reason` to stderr. This command counts these lines.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::control_plane;

/// Control plane to run on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Control plane to run on
    #[arg(long, value_enum, default_value = "embedded")]
    control_plane: Plane,
    /// Arguments for the test binary, such as a part of a test's name
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Control planes, with the names that `OPKIT_CONTROL_PLANE` uses.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Plane {
    /// The server of this repository, in the test process
    Embedded,
    /// etcd and Kubernetes, built first if necessary
    Binaries,
    /// The cluster of the current kubeconfig
    Cluster,
}

impl Plane {
    const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Binaries => "binaries",
            Self::Cluster => "cluster",
        }
    }
}

/// Runs the suite; fails if a test fails.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let plane = args.control_plane.name();
    let mut command = Command::new("cargo");
    command
        .args(["test", "--package", "conformance", "--lib"])
        // The commands of the tour, in a cluster.
        .args(["--package", "newcomer"])
        // Replicas as processes, which need the binary of an example.
        .args(["--package", "shop-operator", "--test", "replicas", "--"])
        .args(&args.arguments)
        .env("OPKIT_CONTROL_PLANE", plane)
        .stderr(Stdio::piped());
    if matches!(args.control_plane, Plane::Binaries) {
        command.env("KUBEBUILDER_ASSETS", control_plane::ensure(None)?);
    }
    println!(
        "$ OPKIT_CONTROL_PLANE={plane} cargo test --package conformance --lib \
         --package newcomer --package shop-operator --test replicas"
    );
    let mut child = command.spawn().context("cannot run cargo")?;
    let mut skipped = 0_usize;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.context("cannot read cargo's output")?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            skipped += usize::from(is_skip(&line));
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    let outcome = if status.success() { "passes" } else { "FAILS" };
    println!("conformance on {plane}: {outcome}, {skipped} skipped");
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Reports whether a line is about a skipped test. Tests that run at the same time may print before
/// it on the same line.
fn is_skip(line: &str) -> bool {
    line.split_once("SKIPPED ")
        .is_some_and(|(_, rest)| rest.contains(": "))
}
