//! controller-runtime's own suites.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::ginkgo::{self, Module};
use super::report::{Expected, Report};
use super::{Setup, module};

const MODULE: &str = "sigs.k8s.io/controller-runtime@v0.25.2";

/// Failures by the features that the embedded API server does not have.
const EXPECTED: &[Expected] = &[];

/// Tests that ignore `KUBEBUILDER_ASSETS`: they download and run the programs of Kubernetes 1.28.
const OTHER_VERSION: &str = "/aggregatedDiscovery=false";

/// Texts in the test files of a package that starts an API server.
const STARTS: [&str; 2] = ["envtest.Environment{", "&Environment{"];

/// Runs every package that starts an API server, and prints a line for each. Returns whether
/// exactly the expected tests failed on the stand-ins.
pub(super) fn run(setup: &Setup) -> Result<bool> {
    let directory = setup.directory.join("controller-runtime");
    module::copy(MODULE, &directory)?;
    let mut report = Report::new(MODULE, EXPECTED);
    let module = Module {
        name: "",
        directory: &directory,
        skip: OTHER_VERSION,
    };
    ginkgo::run(setup, &module, &packages(&directory)?, &mut report)?;
    Ok(report.finish())
}

/// Returns the packages whose tests start an API server, sorted by path.
fn packages(module: &Path) -> Result<Vec<String>> {
    let mut packages = Vec::new();
    let mut directories = vec![module.join("pkg")];
    while let Some(directory) = directories.pop() {
        let mut starts = false;
        let entries = fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with("_test.go") {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                starts |= STARTS.iter().any(|start| text.contains(start));
            }
        }
        if starts {
            let package = directory.strip_prefix(module)?;
            packages.push(package.to_string_lossy().into_owned());
        }
    }
    packages.sort();
    Ok(packages)
}
