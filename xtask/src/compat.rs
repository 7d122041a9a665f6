//! `cargo xtask compat`: test suites of other projects, run on the embedded API server by way of
//! the stand-ins that `opkit envtest assets` writes.
//!
//! The suites are Go modules, which are downloaded and copied to the target directory, because Go's
//! module cache is read-only.

mod controller_runtime;
mod ginkgo;
mod module;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::control_plane;

/// Suites to run, and their options.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Suites to run
    #[arg(required = true)]
    suites: Vec<Suite>,
    /// Run the suites on the real programs of Kubernetes as well, and print both times
    #[arg(long)]
    real: bool,
    /// Run only packages whose paths contain this text
    #[arg(long)]
    only: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Suite {
    /// The packages of controller-runtime that start an API server
    ControllerRuntime,
}

/// Directories that a suite needs.
#[derive(Debug)]
struct Setup {
    /// Directory for copies of modules and for reports.
    directory: PathBuf,
    /// Directory of the stand-ins.
    assets: PathBuf,
    /// Directory of the real programs, if they are to be run as well.
    real: Option<PathBuf>,
    only: Option<String>,
}

/// Result of one package on one control plane.
#[derive(Clone, Debug, Default)]
struct Outcome {
    passed: usize,
    skipped: usize,
    /// Names of the failed tests.
    failed: Vec<String>,
    time: Duration,
}

/// Runs the suites. The exit code is a failure if a test failed on the stand-ins.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(control_plane::has_go(), "the suites need Go");
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let root = metadata.workspace_root.as_std_path();
    let target = metadata.target_directory.as_std_path();
    let setup = Setup {
        directory: target.join("compat"),
        assets: assets(root, target)?,
        real: match args.real {
            true => Some(control_plane::ensure(None)?),
            false => None,
        },
        only: args.only.clone(),
    };
    let mut is_success = true;
    for suite in &args.suites {
        is_success &= match suite {
            Suite::ControllerRuntime => controller_runtime::run(&setup)?,
        };
    }
    Ok(match is_success {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Builds the command in release mode and writes the stand-ins. Returns their directory.
fn assets(root: &Path, target: &Path) -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "opkit-cli"])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root)
        .status()
        .context("cannot run cargo build")?;
    ensure!(status.success(), "cargo build of the command failed");
    let directory = target.join("compat/assets");
    let status = Command::new(target.join("release/opkit"))
        .args(["envtest", "assets"])
        .arg(&directory)
        .status()
        .context("cannot run opkit")?;
    ensure!(status.success(), "opkit envtest assets failed");
    Ok(directory)
}
