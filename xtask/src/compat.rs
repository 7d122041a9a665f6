//! `cargo xtask compat`: other projects, run on the embedded API server.
//!
//! The Go test suites run on the stand-ins that `opkit envtest assets` writes. Clients run on the
//! cluster of `opkit cluster up`. Go modules are downloaded and copied to the target directory,
//! because Go's module cache is read-only.

mod checks;
mod cluster;
mod controller_gen;
mod controller_runtime;
mod crd_upgrades;
mod ginkgo;
mod gotest;
mod helm;
mod import;
mod kopf;
mod kubebuilder;
mod leftovers;
mod module;
mod report;
mod types;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::control_plane;

/// Suites to run, and their options.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Suites to run
    #[arg(required = true)]
    suites: Vec<Suite>,
    /// Run the Go test suites on the real programs of Kubernetes as well, and print both times
    #[arg(long)]
    real: bool,
    /// Run only packages of the Go test suites, or projects of `types`, whose paths or names
    /// contain this text
    #[arg(long)]
    only: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Suite {
    /// controller-gen: prints the CRDs that the conformance tests compare with opkit's
    ControllerGen,
    /// The Go code of OLM v1's check of CRD upgrades, on the table of opkit's unit tests
    CrdUpgrades,
    /// The packages of controller-runtime that start an API server
    ControllerRuntime,
    /// The tests of projects that kubebuilder scaffolds
    Kubebuilder,
    /// `opkit import` of projects that kubebuilder scaffolds
    Import,
    /// Helm: install, upgrade, roll back and uninstall a chart
    Helm,
    /// An operator in Python with kopf
    Kopf,
    /// The types that `opkit types from-crd` generates for the CRDs of other projects
    Types,
}

/// Directories that a suite needs.
#[derive(Debug)]
struct Setup {
    /// Directory for copies of modules and for reports.
    directory: PathBuf,
    /// The `opkit` command.
    command: PathBuf,
    /// Directory of the stand-ins.
    assets: PathBuf,
    /// Directory of the real programs, if they are to be run as well.
    real: Option<PathBuf>,
    only: Option<String>,
}

/// Runs the suites. The exit code is a success if exactly the expected tests failed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let needs_go = args.suites.iter().any(|suite| *suite != Suite::Kopf);
    ensure!(!needs_go || control_plane::has_go(), "the suites need Go");
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let root = metadata.workspace_root.as_std_path();
    let target = metadata.target_directory.as_std_path();
    let mut is_success = true;
    // These suites need no server.
    let is_static = |suite: &Suite| {
        matches!(
            suite,
            Suite::ControllerGen | Suite::CrdUpgrades | Suite::Import | Suite::Types
        )
    };
    let (printing, suites): (Vec<Suite>, Vec<Suite>) =
        (args.suites.iter()).partition(|it| is_static(it));
    for suite in printing {
        is_success &= match suite {
            Suite::CrdUpgrades => crd_upgrades::run(root, target)?,
            Suite::Import => import::run(root, target)?,
            Suite::Types => types::run(root, target, args.only.as_deref())?,
            _ => controller_gen::run(root, target)?,
        };
    }
    if suites.is_empty() {
        return Ok(exit_code(is_success));
    }
    let command = build(root, target, "release")?;
    let setup = Setup {
        directory: target.join("compat"),
        assets: assets(&command, target)?,
        command,
        real: match args.real {
            true => Some(control_plane::ensure(None)?),
            false => None,
        },
        only: args.only.clone(),
    };
    for suite in &suites {
        is_success &= match suite {
            // These suites have run above.
            Suite::ControllerGen | Suite::CrdUpgrades | Suite::Import | Suite::Types => true,
            Suite::ControllerRuntime => controller_runtime::run(&setup)?,
            Suite::Kubebuilder => kubebuilder::run(&setup)?,
            Suite::Helm => helm::run(&setup)?,
            Suite::Kopf => kopf::run(&setup)?,
        };
    }
    Ok(exit_code(is_success))
}

fn exit_code(is_success: bool) -> ExitCode {
    match is_success {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Builds the `opkit` command with a profile: `release`, or `dev` if its speed does not matter.
/// Returns its path.
fn build(root: &Path, target: &Path, profile: &str) -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--package", "opkit-cli"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(root)
        .status()
        .context("cannot run cargo build")?;
    ensure!(status.success(), "cargo build of the command failed");
    let folder = match profile {
        "dev" => "debug",
        profile => profile,
    };
    Ok(target.join(folder).join("opkit"))
}

/// Writes the stand-ins. Returns their directory.
fn assets(command: &Path, target: &Path) -> Result<PathBuf> {
    let directory = target.join("compat/assets");
    let status = Command::new(command)
        .args(["envtest", "assets"])
        .arg(&directory)
        .stdout(Stdio::null())
        .status()
        .context("cannot run opkit")?;
    ensure!(status.success(), "opkit envtest assets failed");
    Ok(directory)
}
