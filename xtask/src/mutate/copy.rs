//! A copy of the workspace with mutants compiled in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::find::Mutant;

/// Code that reports whether a mutant is enabled; added to each crate that has mutants.
const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, unreachable_pub, reason = "only in builds with mutants")]
pub fn __mutant(number: u32) -> bool {
    static ON: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        let on = std::env::var("OPKIT_MUTANT");
        on.ok().and_then(|on| on.parse().ok()).unwrap_or_default()
    });
    *ON == number
}
"#;

/// Copy of the workspace.
#[derive(Debug)]
pub(crate) struct Copy {
    root: PathBuf,
    crates: Vec<PathBuf>,
}

impl Copy {
    /// Copies the files that git tracks. The build directory of an earlier copy is kept.
    pub(crate) fn new(root: &Path, packages: &[(&str, &[&str])]) -> Result<Self> {
        let listed = Command::new("git").args(["ls-files", "-z"]).output();
        let listed = listed.context("cannot run git")?;
        if !listed.status.success() {
            bail!("git ls-files failed in this directory");
        }
        let listed = String::from_utf8(listed.stdout).context("a path is not UTF-8")?;
        for file in listed.split_terminator('\0') {
            let to = root.join(file);
            let fail = || format!("cannot copy {file} to {}", to.display());
            if let Some(directory) = to.parent() {
                fs::create_dir_all(directory).with_context(fail)?;
            }
            let new = fs::read(file).with_context(fail)?;
            // An unchanged file keeps its modification time, so that cargo does not rebuild it.
            if fs::read(&to).ok().as_ref() != Some(&new) {
                fs::write(&to, new).with_context(fail)?;
            }
        }
        let crates = packages.iter().filter_map(|(_, files)| {
            let (before, _) = files.first()?.split_once("/src/")?;
            Some(Path::new(before).join("src/lib.rs"))
        });
        Ok(Self {
            root: root.to_owned(),
            crates: crates.collect(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the mutants into the copy. They are numbered from 1, in their order.
    pub(crate) fn write(&self, mutants: &[Mutant]) -> Result<()> {
        for file in &self.crates {
            // At the end, because the crate's doc comments and attributes must come first.
            self.put(file, |source| format!("{source}{SWITCH}"))?;
        }
        let mut files: Vec<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
        files.dedup();
        for file in files {
            let mutants = mutants.iter().enumerate();
            let of_file = mutants.filter(|(_, mutant)| mutant.file == file);
            self.put(Path::new(file), |source| spliced(source, of_file))?;
        }
        Ok(())
    }

    /// Writes a changed version of a file of the workspace.
    fn put(&self, file: &Path, change: impl FnOnce(&str) -> String) -> Result<()> {
        let fail = || format!("cannot mutate {}", file.display());
        let source = fs::read_to_string(file).with_context(fail)?;
        fs::write(self.root.join(file), change(&source)).with_context(fail)
    }
}

/// Returns `source` with the mutants inserted, the last one first so that the other positions stay
/// valid.
pub(super) fn spliced<'a>(
    source: &str,
    mutants: impl DoubleEndedIterator<Item = (usize, &'a Mutant)>,
) -> String {
    let mut text = source.to_owned();
    for (n, mutant) in mutants.rev() {
        let switch = format!("crate::__mutant({})", n + 1);
        text.replace_range(mutant.span.clone(), &mutant.text.replace("MUTANT", &switch));
    }
    text
}
