//! The kubeconfig as a file: ours to write and to take away, and nobody else's.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// What every kubeconfig of the embedded control plane says, and hardly another.
const MARK: &str = "current-context: opkit";

/// Where a kubeconfig goes.
#[derive(Debug)]
pub(crate) struct KubeconfigFile {
    path: PathBuf,
    /// What we wrote.
    written: Option<String>,
}

impl KubeconfigFile {
    /// Makes sure that it can be written, without touching what is there.
    pub(crate) fn prepare(path: &Path) -> Result<Self> {
        let directory = directory_of(path);
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        if path.exists() && !fs::read_to_string(path).is_ok_and(|text| text.contains(MARK)) {
            bail!(
                "{} exists and is no kubeconfig of opkit: choose another with --kubeconfig-out",
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

    /// Writes it, whole or not at all, for its owner only.
    pub(crate) fn write(&mut self, text: String) -> Result<()> {
        let next = next_to(&self.path);
        create(&next, &text)
            .and_then(|()| fs::rename(&next, &self.path))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.written = Some(text);
        Ok(())
    }

    /// The line that tells a shell where it is.
    pub(crate) fn export_line(&self) -> String {
        let path = self.path.display();
        if self.path.is_absolute() {
            format!("export KUBECONFIG={path}")
        } else {
            format!("export KUBECONFIG=$PWD/{path}")
        }
    }

    /// Takes it away, if it is still what we wrote: another control plane may have its own there
    /// now.
    pub(crate) fn remove(&self) {
        let found = fs::read_to_string(&self.path).ok();
        if found.is_some() && found == self.written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a new file, for its owner only. What another process left in its place is removed, and
/// neither followed nor kept open to whoever could read it.
fn create(path: &Path, text: &str) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// A place of this process beside that of the file, so that it can be put there in one step.
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
    fn what_lies_in_the_way_is_not_followed() {
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
    fn an_old_file_does_not_lend_its_mode() {
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
