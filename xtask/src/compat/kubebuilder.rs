//! Projects that kubebuilder scaffolds: their tests, except for the end-to-end tests, run
//! unmodified.
//!
//! The scaffolded suites of webhooks have no specs, so Ginkgo does not start their API server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::ginkgo::{self, Module};
use super::report::Report;
use super::{Setup, module};

const MODULE: &str = "sigs.k8s.io/kubebuilder/v4@v4.15.0";

/// Projects that the script of the module scaffolds, in its directory `testdata`.
pub(super) const PROJECTS: [&str; 3] = [
    "project-v4",
    "project-v4-multigroup",
    "project-v4-with-plugins",
];

/// Script of the module that builds kubebuilder and scaffolds the projects.
const SCRIPT: &str = "test/testdata/generate.sh";

/// Scaffolds the projects, runs their tests, and prints a line for each package. Returns whether
/// all tests passed on the stand-ins.
pub(super) fn run(setup: &Setup) -> Result<bool> {
    let source = scaffolded(&setup.directory)?;
    let mut report = Report::new(MODULE, &[]);
    for project in PROJECTS {
        let directory = source.join("testdata").join(project);
        let module = Module {
            name: project,
            directory: &directory,
            skip: "",
        };
        ginkgo::run(setup, &module, &packages(&directory)?, &mut report)?;
    }
    Ok(report.finish())
}

/// Returns the copy of the module in a directory, in which the projects are scaffolded.
pub(super) fn scaffolded(directory: &Path) -> Result<PathBuf> {
    let source = directory.join("kubebuilder");
    module::copy(MODULE, &source)?;
    scaffold(&source)?;
    Ok(source)
}

/// Runs the script of the module, unless an earlier call has done so. The generators that the
/// projects need are downloaded as Go modules.
fn scaffold(source: &Path) -> Result<()> {
    // Written last, so that an interrupted run is repeated.
    let marker = source.join(".opkit-scaffolded");
    if marker.exists() {
        return Ok(());
    }
    keep_inside(source)?;
    let path = source.with_extension("log");
    let log =
        fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    println!("scaffolding with {SCRIPT}: this takes several minutes");
    let status = Command::new("bash")
        .arg(SCRIPT)
        .current_dir(source)
        .env("GOFLAGS", "-buildvcs=false")
        .env("GONOSUMDB", "*")
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .context("cannot run bash")?;
    ensure!(status.success(), "{SCRIPT} failed; see {}", path.display());
    fs::write(&marker, MODULE).with_context(|| format!("cannot write {}", marker.display()))
}

/// Changes the script to store the built kubebuilder in the module instead of a directory that all
/// users of the machine share.
fn keep_inside(source: &Path) -> Result<()> {
    let path = source.join("test/common.sh");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let directory = source.join(".built");
    let line = format!("tmp_root='{}'\n", directory.display());
    let (shared, own) = ("tmp_root=/tmp\n", line.as_str());
    ensure!(
        text.contains(shared) || text.contains(own),
        "{} does not set tmp_root",
        path.display()
    );
    fs::write(&path, text.replace(shared, own))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the packages of a project that have tests, relative to its directory. The end-to-end
/// tests have a build tag, so their package is not among them.
fn packages(project: &Path) -> Result<Vec<String>> {
    let tests = "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}";
    let output = module::go(project)
        .args(["list", "-f", tests, "./..."])
        .output()
        .context("cannot run go list")?;
    ensure!(
        output.status.success(),
        "go list failed in {}: {}",
        project.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let project = project
        .canonicalize()
        .with_context(|| format!("cannot find {}", project.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut packages = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let package = Path::new(line).strip_prefix(&project)?;
        packages.push(package.to_string_lossy().into_owned());
    }
    packages.sort();
    Ok(packages)
}
