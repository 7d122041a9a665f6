//! CRDs of a git revision: those that are committed, or those of the operator that is built from
//! it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::source::{NewArgs, is_manifest, parse};
use crate::dev::package::Package;

/// Name of the worktree's directory, before the commit. It is in the parent directory of the
/// repository, so that paths to what is beside the repository lead to the same place.
const WORKTREE: &str = ".opkit-git-";

/// CRDs of a revision.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) crds: Vec<Value>,
    /// Names of the CRDs that no file has, if the revision is not built: it may define them.
    pub(super) unknown: Vec<String>,
}

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

    /// Returns the CRDs with these names at the revision. Those that no file has are taken from the
    /// operator that is built from the revision, unless only files are to be compared: with a path,
    /// or if `new` selects no package.
    pub(super) async fn crds(&self, names: &[&str], new: &NewArgs) -> Result<Found> {
        let package = match new.crds {
            Some(_) => None,
            None if new.operator.binary.is_some() => None,
            None => Some(Package::find(new.operator.package.as_deref())?),
        };
        let here = PathBuf::from(".");
        let directory = package.as_ref().map_or(&here, |it| &it.directory);
        let mut crds = self.committed(directory, names)?;
        let known: Vec<&str> = crds.iter().filter_map(name).collect();
        let mut unknown: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        unknown.retain(|name| !known.contains(&name.as_str()));
        match package {
            _ if unknown.is_empty() => {}
            Some(package) if self.path.is_none() => {
                let built = self.build(&package).await?;
                let is_missing = |crd: &Value| unknown.iter().any(|it| name(crd) == Some(it));
                crds.extend(built.into_iter().filter(is_missing));
                unknown.clear();
            }
            _ if crds.is_empty() => {
                bail!(
                    "{} with a CRD of the name {}",
                    self.place(),
                    names.join(" or ")
                )
            }
            _ => {}
        }
        Ok(Found { crds, unknown })
    }

    /// Returns where no file was found, as the start of a sentence.
    pub(super) fn place(&self) -> String {
        let path = self.path.as_ref().map(|path| format!(" under {path}"));
        format!("{} has no file{}", self.name, path.unwrap_or_default())
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
                let Some(name) = name(&crd).filter(|name| names.contains(name)) else {
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
        let rev_parse = |what: &str| stdout(git(&package.directory).args(["rev-parse", what]));
        let prefix = rev_parse("--show-prefix")?;
        let repository = PathBuf::from(rev_parse("--show-toplevel")?.trim_end());
        let worktree = Worktree::add(package, &repository, &self.commit)?;
        let directory = worktree.path.join(prefix.trim_end());
        if !directory.is_dir() {
            bail!(
                "{} has no directory {}: --against {}:PATH compares only files",
                self.name,
                prefix.trim_end(),
                self.name
            );
        }
        let command = std::env::current_exe().context("cannot find the path of this command")?;
        let output = tokio::process::Command::new(command)
            .args(["manifests", "--package", &package.name, "--output", "json"])
            .current_dir(&directory)
            // Packages have the same path in their workspace, and so the same names of files, in
            // both trees: with a shared directory, cargo would take a file of one for the other.
            .env("CARGO_TARGET_DIR", package.target.join("opkit/git"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("cannot build {} from {}", package.name, self.name))?;
        if !output.status.success() {
            bail!(
                "cannot build {} from {}: see the output above; --against {}:PATH compares only files",
                package.name,
                self.name,
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
    /// Adds a worktree beside the repository or, if that directory cannot be written to, in cargo's
    /// target directory.
    fn add(package: &Package, repository: &Path, commit: &str) -> Result<Self> {
        let name = format!("{WORKTREE}{}", commit.get(..12).unwrap_or(commit));
        let beside = repository.parent().map(|parent| parent.join(&name));
        let inside = package.target.join("opkit").join(&name);
        match beside.map(|path| Self::add_at(repository, path, commit)) {
            Some(Ok(worktree)) => Ok(worktree),
            Some(Err(_)) | None => Self::add_at(repository, inside, commit),
        }
    }

    fn add_at(repository: &Path, path: PathBuf, commit: &str) -> Result<Self> {
        let worktree = Self {
            repository: repository.to_owned(),
            path,
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

fn name(crd: &Value) -> Option<&str> {
    crd.pointer("/metadata/name").and_then(Value::as_str)
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
