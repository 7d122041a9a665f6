//! The files that an operator is built from, and detection of changes.
//!
//! Changes are found by polling: checking a few hundred files takes a millisecond or two, works on
//! every file system and with every editor, and needs no dependency.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Depth limit of the directories below `src` that are searched; real sources are far less deep.
const DEPTH: usize = 32;

/// Modification time and length of a file.
type Stamp = (Option<SystemTime>, u64);

/// Files of a build, with the state of each file at the start of the build.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Directories of the packages that the operator is built from.
    packages: BTreeSet<PathBuf>,
    /// Files that are compiled into the operator and are not below the `src` of a package.
    others: BTreeSet<PathBuf>,
    seen: BTreeMap<PathBuf, Stamp>,
}

impl Sources {
    /// Returns the sources of the packages that `executable` was built from. cargo lists these
    /// sources in a file beside `executable`. The manifests of the directories `package` and
    /// `workspace` are always included.
    pub(crate) fn of(executable: &Path, package: &Path, workspace: &Path) -> Self {
        let mut packages = BTreeSet::from([package.to_owned()]);
        let mut others =
            BTreeSet::from([workspace.join("Cargo.toml"), workspace.join("Cargo.lock")]);
        let list = fs::read_to_string(executable.with_extension("d")).unwrap_or_default();
        for file in files(&list) {
            let root = file.ancestors().find(|it| it.join("Cargo.toml").is_file());
            if let Some(root) = root {
                packages.insert(root.to_owned());
            }
            others.insert(file);
        }
        others.retain(|file| {
            let mut roots = packages.iter();
            !roots.any(|root| file.starts_with(root.join("src")))
        });
        Self {
            packages,
            others,
            seen: BTreeMap::new(),
        }
    }

    /// Records the current state of the files as the state that the build uses.
    pub(crate) fn mark(&mut self) {
        self.seen = self.stamps();
    }

    /// Copies the recorded states of files from `earlier`, and records the current state of files
    /// that `earlier` does not have.
    pub(crate) fn keep(&mut self, earlier: &Self) {
        self.mark();
        for (path, stamp) in &earlier.seen {
            if let Some(seen) = self.seen.get_mut(path) {
                *seen = *stamp;
            }
        }
    }

    /// Returns a file that was changed, added or removed since its state was recorded, or `None`.
    pub(crate) fn changed(&self) -> Option<PathBuf> {
        let now = self.stamps();
        let new = now
            .iter()
            .find(|(path, stamp)| self.seen.get(*path) != Some(stamp));
        let deleted = || self.seen.iter().find(|(path, _)| !now.contains_key(*path));
        new.or_else(deleted).map(|(path, _)| path.clone())
    }

    /// Returns a file that was written since `time`, or `None`. The first build uses this function,
    /// because the states of the files are not recorded before that build. The lock file is
    /// ignored, because the build itself may have written it.
    pub(crate) fn written_since(&self, time: SystemTime) -> Option<PathBuf> {
        let mut files = self.stamps().into_iter();
        let found = files.find(|(path, (written, _))| {
            written.is_some_and(|written| written >= time) && !path.ends_with("Cargo.lock")
        });
        found.map(|(path, _)| path)
    }

    fn stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let mut stamps = BTreeMap::new();
        for root in &self.packages {
            for file in ["Cargo.toml", "build.rs"] {
                add(&mut stamps, root.join(file));
            }
            add_all(&mut stamps, &root.join("src"), DEPTH);
        }
        for file in &self.others {
            add(&mut stamps, file.clone());
        }
        stamps
    }
}

fn add(stamps: &mut BTreeMap<PathBuf, Stamp>, path: PathBuf) {
    if let Ok(metadata) = fs::metadata(&path) {
        stamps.insert(path, (metadata.modified().ok(), metadata.len()));
    }
}

/// Adds the files below a directory, except temporary files of editors.
fn add_all(stamps: &mut BTreeMap<PathBuf, Stamp>, directory: &Path, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_temporary = name.starts_with('.') || name.starts_with('#') || name.ends_with('~');
        match entry.file_type() {
            _ if is_temporary => {}
            Ok(kind) if kind.is_dir() => add_all(stamps, &path, depth),
            _ => add(stamps, path),
        }
    }
}

/// Parses one of cargo's `.d` files: `executable: file file ..`, where spaces in names are escaped.
fn files(list: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in list.lines() {
        let Some((_, rest)) = line.split_once(": ") else {
            continue;
        };
        let mut file = String::new();
        let mut chars = rest.chars();
        while let Some(char) = chars.next() {
            match char {
                '\\' => file.extend(chars.next()),
                ' ' => files.push(std::mem::take(&mut file)),
                char => file.push(char),
            }
        }
        files.push(file);
    }
    files.retain(|file| !file.is_empty());
    files.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests;
