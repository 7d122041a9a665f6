//! `cargo xtask tidy`: checks that no compiler or linter does.
//!
//! [`check`] is a pure function over a [`Model`] of the repository, so that a test can show that a
//! wrong repository fails. The rest reads the real repository.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fmt, fs};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

mod comments;
mod crates;
mod files;
mod imports;
mod manifests;
mod modules;
#[cfg(test)]
mod tests;

/// Input of the checks: the packages of the workspace and the text of its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) packages: Vec<Package>,
    pub(crate) files: Vec<File>,
}

/// A package of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its manifest, from the root of the repository.
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

/// Violation of a rule.
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

/// Returns the violations in `model`, by path and line.
pub(crate) fn check(model: &Model) -> Vec<Violation> {
    let mut violations = crates::check(&model.packages);
    violations.extend(comments::check(&model.files));
    violations.extend(files::check(&model.files));
    violations.extend(imports::check(&model.files));
    violations.extend(manifests::check(&model.files));
    violations.extend(modules::check(&model.files));
    violations.sort();
    violations
}

/// Reads the repository that cargo runs this program for, or the one around the current directory.
/// A path compiled in could belong to another checkout that shares the target directory.
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

/// Reads the text files below `folder`, without the directories of builds and of git.
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
