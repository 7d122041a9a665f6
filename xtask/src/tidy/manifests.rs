//! Cargo manifests: dependencies sorted, and their versions in one place.
//!
//! Manifests here are written one dependency to a line, so lines are all that is read.

use super::{File, Violation};

/// What is wrong with the manifests among `files`.
pub(super) fn check(files: &[File]) -> Vec<Violation> {
    let manifests = files
        .iter()
        .filter(|file| file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"));
    manifests.flat_map(manifest).collect()
}

fn manifest(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut section = "";
    let mut previous = "";
    for (index, line) in file.text.lines().enumerate() {
        let mut report = |what: String| {
            violations.push(Violation {
                path: file.path.clone(),
                line: index + 1,
                what,
            });
        };
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end().trim_end_matches(']');
            previous = "";
            if section.contains("dependencies.") {
                report(format!("write [{section}] on one line of its table"));
            }
            continue;
        }
        // A blank line or a comment begins a new block, which is sorted by itself.
        let Some(name) = line
            .split(['=', '.', ' '])
            .next()
            .filter(|name| is_key(name))
        else {
            previous = "";
            continue;
        };
        let in_workspace = section == "workspace.dependencies";
        if !in_workspace && !section.ends_with("dependencies") {
            continue;
        }
        if name < previous {
            report(format!(
                "{name} comes after {previous}, but the table is sorted"
            ));
        }
        previous = name;
        if !in_workspace && !line.contains("workspace = true") {
            report(format!(
                "the version of {name} belongs in [workspace.dependencies]"
            ));
        }
    }
    violations
}

fn is_key(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(is_part)
}
