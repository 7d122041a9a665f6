//! Writable copies of Go modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    dir: PathBuf,
}

/// Downloads a module, such as `sigs.k8s.io/controller-runtime@v0.25.2`, and copies it to `to`,
/// unless an earlier call has done so.
pub(super) fn copy(module: &str, to: &Path) -> Result<()> {
    // Written last, so that an interrupted copy is repeated.
    let marker = to.join(".opkit-module");
    if fs::read_to_string(&marker).is_ok_and(|copied| copied == module) {
        return Ok(());
    }
    let output = go(&std::env::temp_dir())
        .args(["mod", "download", "-json", module])
        .output()
        .context("cannot run go mod download")?;
    ensure!(
        output.status.success(),
        "go mod download {module} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let download: Download = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("go mod download {module} printed no directory"))?;
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    copy_directory(&download.dir, to)?;
    fs::write(&marker, module).with_context(|| format!("cannot write {}", marker.display()))
}

/// Returns the `go` command for the module in a directory.
pub(super) fn go(directory: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(directory)
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .env("GONOSUMDB", "*");
    command
}

/// Copies a directory. The copies are writable, although the files of the module cache are not.
fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
            let mut permissions = fs::metadata(&target)?.permissions();
            #[expect(
                clippy::permissions_set_readonly_false,
                reason = "the copy is only for this user"
            )]
            permissions.set_readonly(false);
            fs::set_permissions(&target, permissions)?;
        }
    }
    Ok(())
}
