//! Go test packages: runs a package, and counts its Ginkgo specs and its plain tests.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;
use std::{fs, io};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::leftovers::RunDirectory;
use super::report::{Outcome, Report};
use super::{Setup, gotest, module};

/// A suite in the report that `-ginkgo.json-report` writes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SuiteReport {
    #[serde(default)]
    spec_reports: Option<Vec<SpecReport>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SpecReport {
    leaf_node_type: String,
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    #[serde(default)]
    leaf_node_text: String,
    state: String,
}

/// A Go module whose packages are run.
#[derive(Debug)]
pub(super) struct Module<'a> {
    /// Name in the report, before the path of a package; may be empty.
    pub(super) name: &'a str,
    pub(super) directory: &'a Path,
    /// Go tests to leave out, as a pattern of `go test -skip`; may be empty.
    pub(super) skip: &'a str,
}

/// Runs the tests of the packages of a module, and adds a line for each to the report. Packages
/// without tests, and those that the user did not select, are left out.
pub(super) fn run(
    setup: &Setup,
    module: &Module<'_>,
    packages: &[String],
    report: &mut Report,
) -> Result<()> {
    let reports = setup.directory.join("reports");
    fs::create_dir_all(&reports).context("cannot create the directory of the reports")?;
    for package in packages {
        let name = match module.name {
            "" => package.clone(),
            prefix => format!("{prefix}/{package}"),
        };
        if setup.only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let file =
            |extension: &str| reports.join(format!("{}.{extension}", name.replace('/', "-")));
        let executable = file("test");
        if !build(module.directory, package, &executable)? {
            continue;
        }
        let directory = module.directory.join(package);
        let test = |assets: &Path, extension: &str| {
            let mut command = Command::new(&executable);
            command.current_dir(&directory);
            if !module.skip.is_empty() {
                command.arg(format!("-test.skip={}", module.skip));
            }
            run_package(command, assets, &file(extension))
        };
        let outcome = test(&setup.assets, "log")?;
        let real = match &setup.real {
            Some(assets) => Some(test(assets, "real.log")?),
            None => None,
        };
        report.add(&name, outcome, real);
    }
    Ok(())
}

/// Builds the tests of a package. Returns `false` if the package has no tests.
fn build(module: &Path, package: &str, executable: &Path) -> Result<bool> {
    let status = module::go(module)
        .args(["test", "-c", "-vet=off", "-o"])
        .arg(executable)
        .arg(format!("./{package}"))
        .status()
        .context("cannot run go test")?;
    anyhow::ensure!(status.success(), "the tests of {package} do not build");
    Ok(executable.exists())
}

/// Runs the executable of a package on the control plane whose programs are in `assets`. The output
/// of the tests goes to `log`.
fn run_package(mut command: Command, assets: &Path, log: &Path) -> Result<Outcome> {
    let report = log.with_extension("json");
    let _ = fs::remove_file(&report);
    let output =
        fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let started = SystemTime::now();
    let temporary = RunDirectory::create(log.parent().unwrap_or(Path::new(".")))?;
    let status = command
        .args(["-test.timeout=20m", "-test.v"])
        .arg(format!("-ginkgo.json-report={}", report.display()))
        .arg("-ginkgo.no-color")
        .env("KUBEBUILDER_ASSETS", assets)
        .env("TMPDIR", temporary.path())
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .context("cannot run the tests")?;
    let mut outcome = Outcome {
        time: started.elapsed().unwrap_or_default(),
        ..Outcome::default()
    };
    match fs::read(&report) {
        Ok(text) => {
            let suites: Vec<SuiteReport> = serde_json::from_slice(&text)
                .with_context(|| format!("{} is not a report", report.display()))?;
            count(&suites, &mut outcome);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", report.display()));
        }
    }
    let output = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    gotest::count(&String::from_utf8_lossy(&output), &mut outcome);
    if !status.success() && outcome.failed.is_empty() {
        outcome
            .failed
            .push(format!("the tests ended with {status}"));
    }
    Ok(outcome)
}

fn count(suites: &[SuiteReport], outcome: &mut Outcome) {
    let specs = suites
        .iter()
        .flat_map(|suite| suite.spec_reports.iter().flatten());
    for spec in specs {
        let is_spec = spec.leaf_node_type == "It";
        match spec.state.as_str() {
            "passed" if is_spec => outcome.passed += 1,
            "skipped" | "pending" if is_spec => outcome.skipped += 1,
            "passed" | "skipped" | "pending" => {}
            state => {
                let mut words = spec.container_hierarchy_texts.clone().unwrap_or_default();
                words.push(match is_spec {
                    true => spec.leaf_node_text.clone(),
                    false => spec.leaf_node_type.clone(),
                });
                outcome
                    .failed
                    .push(format!("{} ({state})", words.join(" > ")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_counted_by_state() {
        let report = r#"[{"SpecReports": [
            {"LeafNodeType": "BeforeSuite", "State": "passed"},
            {"LeafNodeType": "It", "LeafNodeText": "works", "State": "passed"},
            {"LeafNodeType": "It", "LeafNodeText": "waits", "State": "pending"},
            {"ContainerHierarchyTexts": ["Client", "Get"], "LeafNodeType": "It",
             "LeafNodeText": "reads", "State": "failed"},
            {"LeafNodeType": "AfterSuite", "State": "timedout"}
        ]}, {"SpecReports": null}]"#;
        let suites: Vec<SuiteReport> = serde_json::from_str(report).unwrap();
        let mut outcome = Outcome::default();
        count(&suites, &mut outcome);
        assert_eq!((outcome.passed, outcome.skipped), (1, 1));
        assert_eq!(
            outcome.failed,
            ["Client > Get > reads (failed)", "AfterSuite (timedout)"]
        );
    }
}
