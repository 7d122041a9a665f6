//! The library opkit that a project depends on.

use crate::manifest;
use crate::tree::Tree;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Source of the library opkit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// Directory of the package `opkit`, absolute or from the directory of the project.
    Path(String),
    /// Address of a git repository.
    Git(String),
    /// Version in the registry.
    Version(String),
}

impl Dependency {
    /// Returns the entry in a `Cargo.toml`, without its braces.
    pub(crate) fn text(&self) -> String {
        let (key, value) = match self {
            Self::Path(path) => ("path", path),
            Self::Git(url) => ("git", url),
            Self::Version(version) => ("version", version),
        };
        format!("{key} = {}", toml_string(value))
    }

    /// Returns the dependency as a package in a directory of the project names it.
    pub(crate) fn in_directory(&self) -> Self {
        match self {
            Self::Path(path) if !path.starts_with('/') => Self::Path(format!("../{path}")),
            other => other.clone(),
        }
    }

    /// Returns the dependency of a project on opkit, as its `Cargo.toml` names it.
    pub(crate) fn of_manifest(tree: &Tree) -> Result<Self> {
        let text = tree.get("Cargo.toml").unwrap_or_default();
        let value = |key: &str| manifest::dependency(text, "opkit", key);
        if let Some(path) = value("path") {
            return Ok(Self::Path(path));
        }
        if let Some(url) = value("git") {
            return Ok(Self::Git(url));
        }
        if let Some(version) = value("version") {
            return Ok(Self::Version(version));
        }
        let reason =
            "[dependencies] has no line `opkit = { ... }` with a version, path or git".to_owned();
        Err(Error::source("Cargo.toml", 1, reason))
    }

    /// Returns the root of the checkout that a path leads to.
    pub(crate) fn checkout(&self) -> Option<String> {
        match self {
            Self::Path(path) => {
                let path = path.trim_end_matches('/');
                Some(
                    path.strip_suffix("/crates/opkit")
                        .unwrap_or(path)
                        .to_owned(),
                )
            }
            _ => None,
        }
    }

    /// Returns the shell command that installs the command `opkit` of the same source. A path is
    /// one from the directory of the project, or from `directory`.
    pub(crate) fn install_command(&self, directory: Option<&str>) -> String {
        match self {
            Self::Path(_) => {
                let checkout = self.checkout().unwrap_or_default();
                let start = match (directory, checkout.starts_with('/')) {
                    (Some(directory), false) => format!("{directory}/"),
                    _ => String::new(),
                };
                format!("cargo install --locked --path {start}{checkout}/crates/cli")
            }
            Self::Git(url) => format!("cargo install --locked --git {url} opkit-cli"),
            Self::Version(version) => {
                format!("cargo install --locked opkit-cli --version {version}")
            }
        }
    }
}

/// Returns a string of TOML.
fn toml_string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
