//! The library opkit that a new project depends on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use opkit_scaffold::{Dependency, Error};

#[cfg(test)]
mod tests;

/// Library that a new project depends on.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) dependency: Dependency,
    /// Root of the checkout that contains it.
    checkout: Option<PathBuf>,
}

impl Library {
    /// Returns the chosen library: `path=..`, `git=..` or `version=..`. Without a choice, it is the
    /// checkout that this command was built from, if it still exists, or else the version of this
    /// command.
    pub(super) fn choose(choice: Option<&str>, project: &Path) -> Result<Self> {
        let of = |dependency| Self {
            dependency,
            checkout: None,
        };
        match choice.map(|choice| choice.split_once('=').unwrap_or((choice, ""))) {
            None => {
                let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../opkit");
                match built.join("Cargo.toml").is_file() {
                    true => Self::at(&built, project),
                    false => Ok(of(Dependency::Version(
                        env!("CARGO_PKG_VERSION").to_owned(),
                    ))),
                }
            }
            Some(("path", path)) if !path.is_empty() => Self::at(Path::new(path), project),
            Some(("git", url)) if !url.is_empty() => Ok(of(Dependency::Git(url.to_owned()))),
            Some(("version", version)) if !version.is_empty() => {
                Ok(of(Dependency::Version(version.to_owned())))
            }
            Some(_) => {
                let value = choice.unwrap_or_default().to_owned();
                let reason = "it is path=DIRECTORY, git=URL or version=VERSION".to_owned();
                Err(Error::Argument {
                    argument: "--opkit",
                    value,
                    reason,
                }
                .into())
            }
        }
    }

    /// Returns the library in a directory: that of the package, or of a checkout.
    fn at(directory: &Path, project: &Path) -> Result<Self> {
        let package = [directory.join("crates/opkit"), directory.to_owned()];
        let is_package = |it: &&PathBuf| {
            let manifest = fs::read_to_string(it.join("Cargo.toml"));
            manifest.is_ok_and(|text| text.lines().any(|line| line == "name = \"opkit\""))
        };
        let Some(package) = package.iter().find(is_package) else {
            bail!("there is no package opkit in {}", directory.display());
        };
        let failed = || format!("cannot read {}", package.display());
        let package = package.canonicalize().with_context(failed)?;
        let checkout = package.ancestors().nth(2).map(Path::to_owned);
        let path = relative(&package, project).unwrap_or(package);
        Ok(Self {
            dependency: Dependency::Path(path.to_string_lossy().into_owned()),
            checkout,
        })
    }

    /// Returns the versions of all other crates that the checkout is tested with.
    pub(super) fn lock_file(&self) -> Option<String> {
        fs::read_to_string(self.checkout.as_ref()?.join("Cargo.lock")).ok()
    }

    /// Returns a description for the user.
    pub(super) fn description(&self) -> String {
        match &self.dependency {
            Dependency::Path(path) => format!("path {path}"),
            Dependency::Git(url) => format!("git {url}"),
            Dependency::Version(version) => format!("version {version}"),
        }
    }
}

/// Returns the path of a package from the directory of a project, if both are below the parent of
/// the project, so that they are likely to be moved together.
fn relative(package: &Path, project: &Path) -> Option<PathBuf> {
    let parent = project
        .parent()
        .filter(|parent| parent.parent().is_some())?;
    let below = package.strip_prefix(parent).ok()?;
    Some(Path::new("..").join(below))
}
