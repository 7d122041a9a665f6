//! `cargo xtask conformance`: the conformance suite on a control plane.
//!
//! libtest cannot skip while it runs, so a test that a control plane cannot run passes and says
//! `SKIPPED name: reason` on stderr. These lines are counted here.

use std::{
    io::{BufRead, BufReader},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result};

use crate::control_plane;

/// Where to run it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The control plane.
    #[arg(long, value_enum, default_value = "embedded")]
    control_plane: Plane,
    /// Arguments for the test binary, such as a part of a test's name.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// The control planes, as `OPKIT_CONTROL_PLANE` names them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Plane {
    /// The server of this repository, in the test's process.
    Embedded,
    /// etcd and Kubernetes, built if they are not there yet.
    Binaries,
    /// What the current kubeconfig leads to.
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

/// Runs the suite; fails if a test does.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let plane = args.control_plane.name();
    let mut command = Command::new("cargo");
    command
        .args(["test", "--package", "conformance", "--lib", "--"])
        .args(&args.arguments)
        .env("OPKIT_CONTROL_PLANE", plane)
        .stderr(Stdio::piped());
    if matches!(args.control_plane, Plane::Binaries) {
        command.env("KUBEBUILDER_ASSETS", control_plane::ensure(None)?);
    }
    println!("$ OPKIT_CONTROL_PLANE={plane} cargo test --package conformance --lib");
    let mut child = command.spawn().context("cannot run cargo")?;
    let mut skipped = 0_usize;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.context("cannot read what cargo says")?;
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

/// Tests that run at the same time may put their words before it on the line.
fn is_skip(line: &str) -> bool {
    line.split_once("SKIPPED ")
        .is_some_and(|(_, rest)| rest.contains(": "))
}
