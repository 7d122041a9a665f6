//! `opkit upgrade`: moves a project to another version or source of opkit.

mod breaking;
mod entry;

use crate::dependency::Dependency;
use crate::manifest::{Manifest, TYPES_MANIFEST};
use crate::tooling::{self, Libc};
use crate::tree::Tree;
use crate::{Error, Outcome, Result};

#[cfg(test)]
mod tests;

/// Tables of a `Cargo.toml` with dependencies.
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Moves a project to a version or source of opkit: the dependencies in `Cargo.toml`, and the files
/// of [`Tooling`](crate::Tooling) that are as this library writes them for the old dependency.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Version to move to, which is that of the command.
    pub version: String,
    /// Source to move to; `None` keeps the source of the project.
    pub to: Option<Dependency>,
    /// Version of opkit in the project's `Cargo.lock`, if it is known.
    pub locked: Option<String>,
}

impl Upgrade {
    /// Returns the version of opkit in the text of a `Cargo.lock`.
    pub fn locked_version(lock: &str) -> Option<String> {
        let mut lines = lock.lines().skip_while(|line| *line != "name = \"opkit\"");
        let version = lines.nth(1)?.strip_prefix("version = \"")?;
        version.strip_suffix('"').map(str::to_owned)
    }

    /// Returns the changes of a project, and the breaking changes of opkit since the version that
    /// it uses.
    ///
    /// # Errors
    /// If the project does not depend on opkit in its own `Cargo.toml`, or an entry cannot be
    /// edited.
    pub fn apply(&self, tree: &Tree) -> Result<Outcome> {
        self.apply_with(tree, breaking::CHANGELOG)
    }

    fn apply_with(&self, tree: &Tree, changelog: &str) -> Result<Outcome> {
        let manifest = Manifest::of(tree)?;
        let old = Dependency::of_manifest(tree)?;
        let new = match (&self.to, &old) {
            (Some(to), _) => to.clone(),
            (None, Dependency::Version(requirement)) => {
                Dependency::Version(next_requirement(requirement, &self.version))
            }
            (None, other) => other.clone(),
        };
        let mut after = tree.clone();
        let mut text = tree.get("Cargo.toml").unwrap_or_default().to_owned();
        for table in TABLES {
            text = entry::edit(&text, table, &new, &self.version)?;
        }
        after.insert("Cargo.toml", text);
        if manifest.has_types_crate {
            let mut text = tree.get(TYPES_MANIFEST).unwrap_or_default().to_owned();
            for table in TABLES {
                text = entry::edit(&text, table, &new.in_directory(), &self.version)
                    .map_err(|error| error.in_file(TYPES_MANIFEST))?;
            }
            after.insert(TYPES_MANIFEST, text);
        }
        let kept = regenerate(&mut after, &manifest, &old, &new);
        let mut outcome = Outcome::new(tree, &after);
        let used = match (&self.locked, &old) {
            (Some(locked), _) => Some(locked.as_str()),
            (None, Dependency::Version(requirement)) => Some(requirement.as_str()),
            (None, _) => None,
        };
        // The version may move although the requirement allows it already.
        let is_older = |used: &str| breaking::numbers(used) < breaking::numbers(&self.version);
        if outcome.changes.is_empty() && !self.locked.as_deref().is_some_and(is_older) {
            return Ok(outcome);
        }
        if let Some(used) = used {
            outcome.by_hand = breaking::between(changelog, used, &self.version);
        }
        let mut next = "cargo update -p opkit && cargo test".to_owned();
        match used {
            Some(_) if outcome.by_hand.is_empty() => {}
            Some(used) => {
                next += &format!("; the breaking changes since {used} are listed above");
            }
            None => {
                next += "; breaking changes, and what to write instead, are in the CHANGELOG.md of opkit";
            }
        }
        if !kept.is_empty() {
            let files = kept.join(", ");
            next += &format!("; edited by hand, so compare with `opkit add`: {files}");
        }
        outcome.next = Some(next);
        Ok(outcome)
    }
}

/// Writes the files that are as generated for the old dependency as they are for the new one.
/// Returns the others that would differ.
fn regenerate(
    tree: &mut Tree,
    manifest: &Manifest,
    old: &Dependency,
    new: &Dependency,
) -> Vec<&'static str> {
    let mut kept = Vec::new();
    for path in tooling::PATHS {
        let Some(text) = tree.get(path).map(str::to_owned) else {
            continue;
        };
        let versions = [Libc::Musl, Libc::Gnu].map(|libc| {
            let render = |opkit: &Dependency| {
                tooling::generated(path, &text, libc, &manifest.package, opkit)
            };
            (render(old), render(new))
        });
        let generated = versions
            .iter()
            .find(|(old, _)| old.as_deref() == Some(&*text));
        match generated {
            Some((_, Some(new))) => tree.insert(path, new.clone()),
            _ if versions.iter().all(|(old, new)| old == new) => {}
            _ => kept.push(path),
        }
    }
    kept
}

/// Returns the requirement for a version, with as many numbers as the old one has. A requirement
/// that allows the version stays.
fn next_requirement(old: &str, version: &str) -> String {
    let plain = old.trim().trim_start_matches('^');
    let parts: Vec<&str> = plain.split('.').collect();
    let numbers: Option<Vec<u64>> = parts.iter().map(|part| part.parse().ok()).collect();
    let wanted: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    let (Some(numbers), Some(wanted)) = (numbers, wanted) else {
        // Operators such as `=` and `~`, and pre-releases.
        return version.to_owned();
    };
    // Versions are compatible if they agree up to the first number that is not 0.
    let significant = numbers.iter().position(|number| *number > 0);
    let significant = significant.unwrap_or(numbers.len().saturating_sub(1));
    let agree = numbers.iter().zip(&wanted).take(significant + 1);
    if agree.clone().all(|(old, new)| old == new) && numbers <= wanted {
        return old.to_owned();
    }
    let shown = version.split('.').take(numbers.len());
    shown.collect::<Vec<_>>().join(".")
}

/// Returns the error of an entry that cannot be edited.
fn refused(line: usize, reason: &str) -> Error {
    Error::source("Cargo.toml", line, reason)
}
