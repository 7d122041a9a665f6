//! `opkit import` of projects that kubebuilder scaffolds: the result compiles, its tests pass, and
//! its CRDs are those of the original.

mod equal;
mod memcached;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::kubebuilder;

/// Project of the unit tests of the import.
const SHOP: &str = "crates/scaffold/src/import/shop";

/// Imports the projects, and prints a line for each. Returns whether all are as expected.
pub(super) fn run(root: &Path, target: &Path) -> Result<bool> {
    let command = super::build(root, target, "dev")?;
    let source = kubebuilder::scaffolded(&target.join("compat"))?;
    let directory = target.join("compat/import");
    let mut projects = Vec::new();
    for name in kubebuilder::PROJECTS {
        projects.push(source.join("testdata").join(name));
    }
    projects.push(memcached::scaffold(&source, &directory)?);
    projects.push(root.join(SHOP));
    let mut is_success = true;
    for project in projects {
        let name = project.file_name().unwrap_or_default().to_string_lossy();
        match check(&command, root, target, &directory, &project) {
            Ok(result) => println!("import {name}: {result}"),
            Err(error) => {
                is_success = false;
                println!("import {name}: FAILED: {error:#}");
            }
        }
    }
    Ok(is_success)
}

/// Imports a project, and runs its tests. Returns what was found.
fn check(
    command: &Path,
    root: &Path,
    target: &Path,
    directory: &Path,
    project: &Path,
) -> Result<String> {
    let name = project.file_name().context("the project has no name")?;
    let out = directory.join("opkit").join(name);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let mut import = Command::new(command);
    import.arg("import").arg(project).arg("--out").arg(&out);
    import
        .arg("--opkit")
        .arg(format!("path={}", root.display()));
    let imported = output(&mut import, "opkit import")?;
    let imported = String::from_utf8_lossy(&imported.stdout).into_owned();
    let ports = imported
        .lines()
        .filter(|line| line.starts_with("   port "))
        .count();

    // The target directory of this repository, so that the library is compiled once.
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new("cargo");
        cargo
            .args(arguments)
            .current_dir(&out)
            .env("CARGO_TARGET_DIR", target);
        output(&mut cargo, &format!("cargo {}", arguments.join(" ")))
    };
    cargo(&["fmt", "--check"])?;
    let tested = cargo(&["test", "--quiet"])?;
    let tested = String::from_utf8_lossy(&tested.stdout).into_owned();
    let passed = tested
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. "));
    let passed = passed.filter_map(|line| line.split(' ').next()?.parse::<usize>().ok());
    let passed: usize = passed.sum();
    ensure!(passed > 0, "cargo test ran no tests");

    let mut manifests = Command::new(command);
    manifests
        .arg("manifests")
        .current_dir(&out)
        .env("CARGO_TARGET_DIR", target);
    let manifests = output(&mut manifests, "opkit manifests")?;
    let ours = equal::crds(&String::from_utf8_lossy(&manifests.stdout))?;
    let originals = originals(project)?;
    let differences = equal::differences(ours, &originals);
    ensure!(
        differences.is_empty(),
        "its CRDs differ: {}",
        differences.join("; ")
    );
    Ok(format!(
        "{} CRDs are equal, {passed} tests passed, {ports} lines to port",
        originals.len()
    ))
}

/// Returns the CRDs that controller-gen wrote for a project.
fn originals(project: &Path) -> Result<Vec<Value>> {
    let folder = project.join("config/crd/bases");
    let mut crds = Vec::new();
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        crds.extend(equal::crds(&text)?);
    }
    Ok(crds)
}

/// Runs a command to its end. A failure has its output.
fn output(command: &mut Command, name: &str) -> Result<Output> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output)
}
