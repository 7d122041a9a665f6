//! Files of the scripts, recordings and known differences.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::{Known, Recording, Script};

/// Data in the directory of this crate.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Path of the directory.
    pub folder: PathBuf,
    /// Scripts, sorted by name.
    pub scripts: Vec<Script>,
    /// Known differences.
    pub known: Vec<Known>,
}

impl Suite {
    /// Reads the directory.
    ///
    /// # Errors
    /// If a file cannot be read or parsed.
    pub fn read(folder: &Path) -> Result<Self> {
        let scripts = folder.join("scripts");
        let entries = fs::read_dir(&scripts)
            .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
            .with_context(|| format!("cannot list {}", scripts.display()))?;
        let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(Self {
            folder: folder.to_owned(),
            scripts: paths
                .iter()
                .map(|path| script(path))
                .collect::<Result<_>>()?,
            known: serde_saphyr::from_str(&text(&folder.join("known-differences.yaml"))?)
                .context("cannot read known-differences.yaml")?,
        })
    }

    /// Returns the number of requests in all scripts.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.scripts.iter().map(|script| script.steps.len()).sum()
    }

    /// Returns the number of known differences.
    #[must_use]
    pub fn known_places(&self) -> usize {
        self.known.iter().map(|known| known.places.len()).sum()
    }
}

/// Returns the real server's responses to `script`.
///
/// # Errors
/// If the recording does not exist or cannot be read.
pub fn read_recording(folder: &Path, script: &str) -> Result<Recording> {
    let path = recording(folder, script);
    serde_json::from_str(&text(&path)?).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes the real server's responses to `script`.
///
/// # Errors
/// If the file cannot be written.
pub fn write_recording(folder: &Path, script: &str, responses: &Recording) -> Result<()> {
    let path = recording(folder, script);
    let mut text = serde_json::to_string_pretty(responses)?;
    text.push('\n');
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn recording(folder: &Path, script: &str) -> PathBuf {
    folder.join("recordings").join(format!("{script}.json"))
}

fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn script(path: &Path) -> Result<Script> {
    let text = text(path)?;
    let mut script: Script =
        serde_saphyr::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    script.name = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    script.text = text;
    let names: BTreeSet<&str> = script.steps.iter().map(|step| step.name.as_str()).collect();
    ensure!(
        names.len() == script.steps.len(),
        "two steps of {} have the same name",
        script.name
    );
    Ok(script)
}
