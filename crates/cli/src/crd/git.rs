//! CRDs of a git revision: those that are committed, or those of the operator that is built from
//! it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::source::{NewArgs, is_manifest, parse};
use crate::dev::package::Package;

/// A revision, and a path in it.
#[derive(Debug)]
pub(super) struct Revision {
    /// Revision as given, for messages.
    name: String,
    commit: String,
    /// Path from the root of the repository.
    path: Option<String>,
}

impl Revision {
    /// Finds a revision such as `v0.1.0` or `v0.1.0:config/crd` in the repository of the current
    /// directory; `None` if there is no such revision.
    pub(super) fn find(text: &str) -> Result<Option<Self>> {
        let (name, path) = match text.split_once(':') {
            Some((name, path)) => (name, Some(path.to_owned())),
            None => (text, None),
        };
        let commit = format!("{name}^{{commit}}");
        let output = git(Path::new("."))
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(commit)
            .stderr(Stdio::null())
            .output()
            .context("cannot run git")?;
        Ok(output.status.success().then(|| Self {
            name: name.to_owned(),
            commit: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            path,
        }))
    }

    /// Returns the CRDs with these names at the revision. `new` selects the operator to build if
    /// the revision has no files with them.
    pub(super) async fn crds(&self, names: &[&str], new: &NewArgs) -> Result<Vec<Value>> {
        let package = match new.crds {
            Some(_) => None,
            None if new.operator.binary.is_some() => None,
            None => Some(Package::find(new.operator.package.as_deref())?),
        };
        let here = PathBuf::from(".");
        let directory = package.as_ref().map_or(&here, |it| &it.directory);
        let committed = self.committed(directory, names)?;
        match (committed.is_empty(), package) {
            (false, _) => Ok(committed),
            (true, Some(package)) if self.path.is_none() => self.build(&package).await,
            (true, _) => {
                let path = self.path.as_ref().map(|path| format!(" under {path}"));
                bail!(
                    "{} has no file{} with a CRD of the name {}",
                    self.name,
                    path.unwrap_or_default(),
                    names.join(" or ")
                )
            }
        }
    }

    /// Returns the CRDs in the files of the directory at the revision.
    fn committed(&self, directory: &Path, names: &[&str]) -> Result<Vec<Value>> {
        let mut list = git(directory);
        list.args(["ls-tree", "-r", "-z", "--name-only"]);
        match &self.path {
            Some(path) => list.args(["--full-tree", &self.commit, "--", path]),
            None => list.arg(&self.commit),
        };
        let is_full = self.path.is_some();
        let mut found: Vec<(String, Value)> = Vec::new();
        for path in stdout(&mut list)?.split('\0') {
            if !is_manifest(Path::new(path)) {
                continue;
            }
            let prefix = if is_full { "" } else { "./" };
            let file = format!("{}:{prefix}{path}", self.commit);
            let text = stdout(git(directory).args(["show", &file]))?;
            if !text.contains("CustomResourceDefinition") {
                continue;
            }
            // A template of a chart need not be YAML.
            for crd in parse(&text).unwrap_or_default() {
                let name = crd.pointer("/metadata/name").and_then(Value::as_str);
                let Some(name) = name.filter(|name| names.contains(name)) else {
                    continue;
                };
                let same =
                    |it: &&(String, Value)| it.1.pointer("/metadata/name") == Some(&name.into());
                match found.iter().find(same) {
                    Some((other, it)) if it.get("spec") != crd.get("spec") => bail!(
                        "{} has the CRD {name} in {other} and in {path}: choose one with --against {}:PATH",
                        self.name,
                        self.name
                    ),
                    Some(_) => {}
                    None => found.push((path.to_owned(), crd)),
                }
            }
        }
        Ok(found.into_iter().map(|(_, crd)| crd).collect())
    }

    /// Builds the operator from the revision, in a git worktree, and returns the CRDs that it
    /// prints.
    async fn build(&self, package: &Package) -> Result<Vec<Value>> {
        let prefix = stdout(git(&package.directory).args(["rev-parse", "--show-prefix"]))?;
        let worktree = Worktree::add(package, &self.commit)?;
        let directory = worktree.path.join(prefix.trim_end());
        if !directory.is_dir() {
            bail!("{} has no directory {}", self.name, prefix.trim_end());
        }
        let command = std::env::current_exe().context("cannot find the path of this command")?;
        let output = tokio::process::Command::new(command)
            .args(["manifests", "--package", &package.name, "--output", "json"])
            .current_dir(&directory)
            .env("CARGO_TARGET_DIR", &package.target)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("cannot build {} from {}", package.name, self.name))?;
        if !output.status.success() {
            bail!(
                "cannot build {} from {}: see the output above",
                package.name,
                self.name
            );
        }
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

/// A git worktree, which is removed at the end.
struct Worktree {
    repository: PathBuf,
    path: PathBuf,
}

impl Worktree {
    fn add(package: &Package, commit: &str) -> Result<Self> {
        let short = commit.get(..12).unwrap_or(commit);
        let worktree = Self {
            repository: package.directory.clone(),
            path: package.target.join("opkit").join(format!("git-{short}")),
        };
        // Left by a command that was killed.
        worktree.remove();
        let mut add = git(&worktree.repository);
        add.args(["worktree", "add", "--detach", "--force"]);
        stdout(add.arg(&worktree.path).arg(commit))?;
        Ok(worktree)
    }

    fn remove(&self) {
        let mut remove = git(&self.repository);
        remove
            .args(["worktree", "remove", "--force"])
            .arg(&self.path);
        // There may be no such worktree.
        let _ = remove.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.remove();
    }
}

fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Runs git, and returns its standard output.
fn stdout(command: &mut Command) -> Result<String> {
    let output = command.output().context("cannot run git")?;
    if !output.status.success() {
        let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let first = stderr.lines().next().unwrap_or("it prints no error");
        bail!("git {} failed: {first}", arguments.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
