//! Processes that a test suite leaves behind.
//!
//! Some suites do not stop each control plane that they start. The processes have their files below
//! the temporary directory of the run, so its path is in their arguments.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Temporary directory of one run. When this is dropped, the processes that use the directory are
/// stopped, and the directory is removed.
#[derive(Debug)]
pub(super) struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Creates the directory below `parent`.
    pub(super) fn create(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let text = format!("{}/", self.0.display());
        for id in processes(text.as_bytes()) {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the ids of the processes that have `text` in their arguments; none where there is no
/// `/proc`.
fn processes(text: &[u8]) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let has_text = |id: &String| {
        let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        arguments.windows(text.len()).any(|part| part == text)
    };
    ids.filter(has_text).collect()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_process_that_uses_the_directory_is_stopped() {
        let directory = RunDirectory::create(&std::env::temp_dir().join("opkit-xtask")).unwrap();
        let path = directory.path().to_owned();
        let mut process = Command::new("tail")
            .arg("-f")
            .arg(path.join("file"))
            .arg("/dev/null")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A new process may not have its arguments yet.
        let text = format!("{}/", path.display());
        while processes(text.as_bytes()).is_empty() {
            std::thread::yield_now();
        }
        drop(directory);
        assert!(!process.wait().unwrap().success());
        assert!(!path.exists());
    }
}
