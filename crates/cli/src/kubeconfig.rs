//! Kubeconfig file of the embedded control plane. Only a file that this command wrote is replaced
//! or removed.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Text that marks a kubeconfig of the embedded control plane. Other kubeconfigs hardly ever
/// contain it.
const MARK: &str = "current-context: opkit";

/// Path and content of a kubeconfig file.
#[derive(Debug)]
pub(crate) struct KubeconfigFile {
    path: PathBuf,
    /// Content that this process wrote.
    written: Option<String>,
}

impl KubeconfigFile {
    /// Checks that the file can be written, without changing an existing file.
    pub(crate) fn prepare(path: &Path) -> Result<Self> {
        let directory = directory_of(path);
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        if path.exists() && !fs::read_to_string(path).is_ok_and(|text| text.contains(MARK)) {
            bail!(
                "{} exists and is not a kubeconfig of opkit: choose another path with --kubeconfig-out",
                path.display()
            );
        }
        let next = next_to(path);
        create(&next, "")
            .and_then(|()| fs::remove_file(&next))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            written: None,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the whole file in one step, readable by its owner only.
    pub(crate) fn write(&mut self, text: String) -> Result<()> {
        let next = next_to(&self.path);
        create(&next, &text)
            .and_then(|()| fs::rename(&next, &self.path))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.written = Some(text);
        Ok(())
    }

    /// Returns the shell command that sets `KUBECONFIG`.
    pub(crate) fn export_line(&self) -> String {
        let path = self.path.display();
        if self.path.is_absolute() {
            format!("export KUBECONFIG={path}")
        } else {
            format!("export KUBECONFIG=$PWD/{path}")
        }
    }

    /// Removes the file if it still has the content that this process wrote. The content differs if
    /// another control plane has replaced the file.
    pub(crate) fn remove(&self) {
        let found = fs::read_to_string(&self.path).ok();
        if found.is_some() && found == self.written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a file that only its owner can read. An existing file or link at `path` is removed: the
/// link is not followed, and the permissions of the file are not kept.
fn create(path: &Path, text: &str) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Returns a path for a temporary file in the directory of `path`, from which the file can be
/// renamed in one step. The path is unique to this process.
fn next_to(path: &Path) -> PathBuf {
    let mut next: OsString = path.as_os_str().to_owned();
    next.push(format!(".{}.new", std::process::id()));
    next.into()
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_link_in_place_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let next = next_to(&path);
        let other = folder.path().join("other");
        fs::write(&other, "precious").unwrap();
        symlink(&other, &next).unwrap();
        let mut file = KubeconfigFile::prepare(&path).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");

        symlink(&other, &next).unwrap();
        file.write("first".to_owned()).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn the_mode_of_an_old_file_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let next = next_to(&path);
        let mut file = KubeconfigFile::prepare(&path).unwrap();
        fs::write(&next, "old").unwrap();
        fs::set_permissions(&next, fs::Permissions::from_mode(0o666)).unwrap();
        file.write("new".to_owned()).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!next.exists());
    }
}
