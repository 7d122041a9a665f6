//! `opkit envtest assets DIR`: writes the stand-ins to a directory.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Program;
use crate::output;

/// Writes `kube-apiserver`, `etcd` and `kubectl` to `directory`, and prints the line that sets
/// `KUBEBUILDER_ASSETS`. Replaces files that an earlier call wrote, and no others.
pub(super) fn write(directory: &Path) -> Result<()> {
    let command = env::current_exe().context("cannot find the file of this command")?;
    let path = env::var_os("PATH").unwrap_or_default();
    write_to(
        directory,
        &command,
        &env::split_paths(&path).collect::<Vec<_>>(),
    )?;
    let directory = directory
        .canonicalize()
        .with_context(|| format!("cannot find {}", directory.display()))?;
    output::write(&format!(
        "export KUBEBUILDER_ASSETS={}\n",
        directory.display()
    ));
    Ok(())
}

/// Writes the stand-ins as copies of `command`. `kubectl` becomes a link to the first real kubectl
/// in the directories of `search`.
fn write_to(directory: &Path, command: &Path, search: &[PathBuf]) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))?;
    let main = directory.join(Program::KubeApiserver.name());
    replace(&main, |to| copy(command, to))?;
    replace(&directory.join(Program::Etcd.name()), |to| link(&main, to))?;
    let kubectl = directory.join(Program::Kubectl.name());
    match find(Program::Kubectl.name(), search, directory) {
        Some(real) => replace(&kubectl, |to| symlink(&real, to)),
        None => replace(&kubectl, |to| link(&main, to)),
    }
}

/// Marker in the directory that names the files which this command wrote, so that it never replaces
/// the programs of a real control plane.
const MARKER: &str = ".opkit-envtest";

/// Creates the file `path` with `create`, after removing the file that an earlier call wrote.
fn replace(path: &Path, create: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let marker = directory.join(MARKER);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let written = match fs::read_to_string(&marker) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).context(format!("cannot read {}", marker.display())),
    };
    let is_written = written.lines().any(|line| line == name);
    if path.symlink_metadata().is_ok() {
        if !is_written {
            bail!(
                "{} exists, and opkit did not write it: choose another directory",
                path.display()
            );
        }
        fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
    }
    if !is_written {
        fs::write(&marker, format!("{written}{name}\n"))
            .with_context(|| format!("cannot write {}", marker.display()))?;
    }
    create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies the command, so that the stand-in outlives it.
fn copy(command: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(command, to).map(drop)
}

/// Links two names to one file, to save space; copies the file where links are not possible.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::hard_link(from, to).or_else(|_| copy(from, to))
}

/// Returns the first executable file `name` in the directories of `search`, except for the one in
/// `directory` itself.
fn find(name: &str, search: &[PathBuf], directory: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let own = directory.canonicalize().ok();
    let is_executable = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    search
        .iter()
        .filter_map(|directory| directory.canonicalize().ok())
        .filter(|directory| Some(directory) != own.as_ref())
        .map(|directory| directory.join(name))
        .find(is_executable)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn executable(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn three_programs_are_written_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("opkit");
        let assets = folder.path().join("assets");
        for text in ["one", "two"] {
            executable(&command, text);
            write_to(&assets, &command, &[]).unwrap();
            for name in ["kube-apiserver", "etcd", "kubectl"] {
                assert_eq!(fs::read_to_string(assets.join(name)).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_real_kubectl_is_linked() {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("opkit");
        executable(&command, "opkit");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        executable(&bin.join("kubectl"), "real");
        let assets = folder.path().join("assets");
        let search = [assets.clone(), bin];
        for _ in 0..2 {
            write_to(&assets, &command, &search).unwrap();
            assert_eq!(fs::read_to_string(assets.join("kubectl")).unwrap(), "real");
        }
    }

    #[test]
    fn the_programs_of_a_real_control_plane_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("opkit");
        executable(&command, "opkit");
        executable(&folder.path().join("etcd"), "real");
        let error = write_to(folder.path(), &command, &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("etcd exists, and opkit did not write it: choose another directory")
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("etcd")).unwrap(),
            "real"
        );
    }
}
