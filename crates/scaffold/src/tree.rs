//! Files of a project in memory, and the changes that a command makes to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::diff::Line;
use crate::manifest::Manifest;
use crate::{Error, Result, manifest, tooling};

mod write;

#[cfg(test)]
mod tests;

/// Folders of a project that commands read and change, besides the manifests.
const FOLDERS: [&str; 4] = ["config/samples", "src", "tests", "types/src"];

/// Text files of a project, by their path from its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the files of the project in `directory` that commands may change: the manifest, the
    /// sources, the tests, the samples, the crate of the kinds, and the files of
    /// [`Tooling`](crate::Tooling).
    ///
    /// # Errors
    /// If there is no `Cargo.toml`, or a file cannot be read.
    pub fn read(directory: &Path) -> Result<Self> {
        let mut tree = Self::default();
        let manifest = directory.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(|cause| Error::Read {
            path: manifest,
            cause,
        })?;
        tree.insert("Cargo.toml", text);
        let files = tooling::PATHS.into_iter().chain([manifest::TYPES_MANIFEST]);
        for name in files {
            let path = directory.join(name);
            if path.is_file() {
                let text =
                    fs::read_to_string(&path).map_err(|cause| Error::Read { path, cause })?;
                tree.insert(name, text);
            }
        }
        for folder in FOLDERS {
            if directory.join(folder).is_dir() {
                tree.read_folder(directory, folder)?;
            }
        }
        Ok(tree)
    }

    fn read_folder(&mut self, directory: &Path, folder: &str) -> Result<()> {
        let path = directory.join(folder);
        let failed = |cause| Error::Read {
            path: path.clone(),
            cause,
        };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                self.read_folder(directory, &name)?;
            } else if [".rs", ".yaml", ".yml"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                let path = entry.path();
                let text =
                    fs::read_to_string(&path).map_err(|cause| Error::Read { path, cause })?;
                self.insert(name, text);
            }
        }
        Ok(())
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.insert(path.into(), text.into());
    }

    /// Removes a file.
    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Returns the text of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Reports whether the kinds have a crate of their own, as
    /// [`AddTypesCrate`](crate::AddTypesCrate) creates it.
    pub fn has_types_crate(&self) -> bool {
        Manifest::of(self).is_ok_and(|manifest| manifest.has_types_crate)
    }

    /// Returns paths and texts of the files, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter();
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the changes that lead from this tree to `after`.
    pub(crate) fn changes_to(&self, after: &Self) -> Changes {
        let mut changes = Vec::new();
        for (path, text) in &after.files {
            let before = self.files.get(path);
            if before != Some(text) {
                changes.push(Change {
                    path: path.clone(),
                    before: before.cloned(),
                    after: Some(text.clone()),
                });
            }
        }
        for (path, text) in &self.files {
            if !after.files.contains_key(path) {
                changes.push(Change {
                    path: path.clone(),
                    before: Some(text.clone()),
                    after: None,
                });
            }
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Changes { changes }
    }
}

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// Path of the file, from the directory of the project.
    pub path: String,
    /// Text before the change; `None` if the file is created.
    pub before: Option<String>,
    /// Text after the change; `None` if the file is deleted.
    pub after: Option<String>,
}

impl Change {
    /// Returns the lines that were removed and added, each after its sign.
    pub fn changed_lines(&self) -> Vec<String> {
        let before = self.before.as_deref().unwrap_or_default();
        let after = self.after.as_deref().unwrap_or_default();
        let lines = crate::diff::lines(before, after).into_iter();
        let lines = lines.filter_map(|line| match line {
            Line::Same(_) => None,
            Line::Removed(line) => Some(format!("- {line}")),
            Line::Added(line) => Some(format!("+ {line}")),
        });
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Changes of a command, sorted by path. Nothing is written before [`Changes::write`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    changes: Vec<Change>,
}

impl Changes {
    /// Returns the change of each file.
    pub fn iter(&self) -> std::slice::Iter<'_, Change> {
        self.changes.iter()
    }

    /// Reports whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns all changes as a unified diff, which `git apply` and `patch -p1` accept.
    pub fn diff(&self) -> String {
        self.changes.iter().map(crate::diff::unified).collect()
    }
}
