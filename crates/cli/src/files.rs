//! Files that a command generates: written, or compared with those on disk.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::deploy::Printer;

/// Generated files of one directory.
#[derive(Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    /// Extension of the files.
    extension: &'static str,
    /// Start of each generated file, by which those of an earlier call are found.
    mark: &'static str,
    /// Paths from the directory, and texts.
    files: Vec<(String, String)>,
}

impl Files {
    pub(crate) fn new(directory: &Path, extension: &'static str, mark: &'static str) -> Self {
        Self {
            directory: directory.to_owned(),
            extension,
            mark,
            files: Vec::new(),
        }
    }

    /// Adds a file, by its path from the directory.
    pub(crate) fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.push((path.into(), text.into()));
    }

    /// Writes the files that differ, and removes those that an earlier call wrote and that are no
    /// longer generated. `what` names the files for the user.
    pub(crate) fn write(&self, what: &str, printer: &Printer) -> Result<()> {
        let (mut written, mut removed) = (0_usize, 0_usize);
        for (path, text) in &self.files {
            let path = self.directory.join(path);
            if fs::read_to_string(&path).is_ok_and(|before| before == *text) {
                continue;
            }
            let parent = path.parent().unwrap_or(&self.directory);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
            written = written.saturating_add(1);
        }
        for path in self.outdated()? {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            removed = removed.saturating_add(1);
        }
        let unchanged = self.files.len().saturating_sub(written);
        let counts = format!("{written} written, {removed} removed, {unchanged} unchanged");
        printer.end(&format!("{what} in {}: {counts}", self.directory.display()));
        Ok(())
    }

    /// Fails with the names of the files that differ from those on disk.
    pub(crate) fn check(all: &[Self], what: &str) -> Result<()> {
        let mut different = Vec::new();
        for files in all {
            for (path, text) in &files.files {
                let path = files.directory.join(path);
                match fs::read_to_string(&path) {
                    Ok(before) if before == *text => {}
                    Ok(_) => different.push(format!("{} differs", path.display())),
                    Err(_) => different.push(format!("{} is missing", path.display())),
                }
            }
            for path in files.outdated()? {
                different.push(format!("{} is no longer printed", path.display()));
            }
        }
        if different.is_empty() {
            return Ok(());
        }
        bail!(
            "the {what} are not up to date, run the same command without --check: {}",
            different.join(", ")
        )
    }

    /// Returns the files in the directory that this command wrote and that are no longer generated.
    fn outdated(&self) -> Result<Vec<PathBuf>> {
        let mut outdated = Vec::new();
        let mut folders = vec![self.directory.clone()];
        while let Some(folder) = folders.pop() {
            // A directory that does not exist has no files.
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
                let path = entry.path();
                // Links are not followed: they may lead out of the directory.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                    continue;
                }
                let mut expected = self.files.iter();
                let is_expected = expected.any(|(it, _)| self.directory.join(it) == path);
                let is_meant = path.extension().is_some_and(|it| it == self.extension);
                if !is_expected
                    && is_meant
                    && fs::read_to_string(&path).is_ok_and(|text| text.starts_with(self.mark))
                {
                    outdated.push(path);
                }
            }
        }
        outdated.sort();
        Ok(outdated)
    }
}
