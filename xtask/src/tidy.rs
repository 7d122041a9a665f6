//! `cargo xtask tidy`: what no compiler or linter checks.
//!
//! [`check`] is a pure function over a [`Model`] of the repository, so that a test can show that a
//! wrong repository fails. Reading the real one is all that the rest does.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

mod files;
mod manifests;
mod modules;
mod rooms;
#[cfg(test)]
mod tests;

/// What is checked: the packages of the workspace and the text of its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) packages: Vec<Package>,
    pub(crate) files: Vec<File>,
}

/// A package of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where its manifest is, from the root of the repository.
    pub(crate) manifest: String,
    /// The other packages of the workspace that it names under `[dependencies]`.
    pub(crate) dependencies: Vec<String>,
}

/// A file, by its path from the root of the repository.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Checks this repository, prints one line per violation, and fails if there is one.
pub(crate) fn run() -> Result<ExitCode> {
    let violations = check(&read()?);
    for violation in &violations {
        println!("{violation}");
    }
    Ok(if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Everything that is wrong in `model`, by path and line.
pub(crate) fn check(model: &Model) -> Vec<Violation> {
    let mut violations = rooms::check(&model.packages);
    violations.extend(files::check(&model.files));
    violations.extend(manifests::check(&model.files));
    violations.extend(modules::check(&model.files));
    violations.sort();
    violations
}

/// The repository that cargo runs this program for, or the one around the current folder. A path
/// compiled in would be another checkout's where two share a target folder.
pub(crate) fn read() -> Result<Model> {
    let mut command = MetadataCommand::new();
    if let Some(package) = std::env::var_os("CARGO_MANIFEST_DIR") {
        command.manifest_path(Path::new(&package).join("Cargo.toml"));
    }
    let metadata = command
        .no_deps()
        .exec()
        .context("cannot read cargo metadata")?;
    let root = metadata.workspace_root.as_std_path();
    let members: Vec<String> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let packages = metadata
        .packages
        .iter()
        .map(|package| Package {
            name: package.name.to_string(),
            manifest: relative(root, package.manifest_path.as_std_path()),
            dependencies: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind == DependencyKind::Normal)
                .map(|dependency| dependency.name.clone())
                .filter(|name| members.contains(name))
                .collect(),
        })
        .collect();
    let mut files = Vec::new();
    walk(root, root, &mut files)?;
    Ok(Model { packages, files })
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}

/// Reads every text file below `folder` but what is built and what git keeps.
fn walk(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | ".git") {
                walk(root, &path, files)?;
            }
        } else {
            // A file that is not text is there, but has no lines.
            let text = fs::read(&path)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            files.push(File {
                path: relative(root, &path),
                text: text.unwrap_or_default(),
            });
        }
    }
    Ok(())
}
