//! Go test packages with Ginkgo suites: runs a package and reads the report of its specs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Outcome;

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

/// Builds the tests of a package. Returns the path of the executable, or `None` if the package has
/// no tests.
pub(super) fn build(module: &Path, package: &str, to: &Path) -> Result<Option<PathBuf>> {
    let executable = to.join(format!("{}.test", package.replace('/', "-")));
    let status = Command::new("go")
        .args(["test", "-c", "-vet=off", "-o"])
        .arg(&executable)
        .arg(format!("./{package}"))
        .current_dir(module)
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .env("GONOSUMDB", "*")
        .status()
        .context("cannot run go test")?;
    anyhow::ensure!(status.success(), "the tests of {package} do not build");
    Ok(executable.exists().then_some(executable))
}

/// Runs the tests of a package on the control plane whose programs are in `assets`. The output of
/// the tests goes to `log`.
pub(super) fn run(
    directory: &Path,
    executable: &Path,
    assets: &Path,
    log: &Path,
) -> Result<Outcome> {
    let report = log.with_extension("json");
    let _ = fs::remove_file(&report);
    let output =
        fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let started = SystemTime::now();
    let status = Command::new(executable)
        .arg("-test.timeout=20m")
        .arg(format!("-ginkgo.json-report={}", report.display()))
        .arg("-ginkgo.no-color")
        .current_dir(directory)
        .env("KUBEBUILDER_ASSETS", assets)
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
        Err(_) => outcome.failed.push("the suite wrote no report".to_owned()),
    }
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
