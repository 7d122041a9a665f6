//! controller-gen: prints the CRDs of the kinds in Go that the conformance tests compare with the
//! kinds in Rust, and compares them with the stored ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Folder with the kinds in Go, the stored CRDs, and the Go module that pins controller-gen.
const FOLDER: &str = "tests/conformance/controller-gen";
/// Files that controller-gen prints, in the order in which they are stored.
const PRINTED: [&str; 2] = [
    "torture.opkit.dev_tortures.yaml",
    "torture.opkit.dev_retireds.yaml",
];

/// Prints the CRDs again. Returns whether they equal the stored ones.
pub(super) fn run(root: &Path, target: &Path) -> Result<bool> {
    let folder = root.join(FOLDER);
    let output = target.join("compat/controller-gen");
    let _ = fs::remove_dir_all(&output);
    fs::create_dir_all(&output)?;
    let status = Command::new("go")
        .args([
            "tool",
            "controller-gen",
            "crd:allowDangerousTypes=true",
            "paths=.",
        ])
        .arg(format!("output:crd:dir={}", output.display()))
        .current_dir(&folder)
        .status()
        .context("cannot run go tool controller-gen")?;
    ensure!(status.success(), "controller-gen failed");
    let mut printed = String::new();
    for file in PRINTED {
        let path = output.join(file);
        let text = fs::read_to_string(&path);
        printed += &text.with_context(|| format!("controller-gen did not print {file}"))?;
    }
    let stored = folder.join("crds.yaml");
    if fs::read_to_string(&stored).unwrap_or_default() == printed {
        println!("controller-gen: the stored CRDs are those that it prints");
        return Ok(true);
    }
    let found = output.join("crds.yaml");
    fs::write(&found, printed)?;
    println!(
        "controller-gen: {} differs from {FOLDER}/crds.yaml; copy it there, and run the conformance tests",
        found.display()
    );
    Ok(false)
}
