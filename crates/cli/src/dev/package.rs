//! The operator's cargo package: search in the workspace, and build.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use cargo_metadata::{DependencyKind, Message, MetadataCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::process::{Child, Command};

use super::sources::Sources;
use super::view::View;

/// Directory of a package's sample objects, as in kubebuilder's projects.
const SAMPLES: &str = "config/samples";

/// Package with a binary that is an operator.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    binary: String,
    pub(crate) directory: PathBuf,
    workspace: PathBuf,
    /// Directory of cargo's build output.
    pub(crate) target: PathBuf,
    pub(crate) settings: PackageSettings,
}

/// Settings in `[package.metadata.opkit]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PackageSettings {
    /// Domain of the groups of new kinds.
    #[serde(default)]
    #[expect(dead_code, reason = "read when kinds are added")]
    domain: Option<String>,
    /// Image of the operator. Without a tag, the tag is the version of the package.
    #[serde(default)]
    pub(crate) image: Option<String>,
    /// Namespace of the operator in a cluster.
    #[serde(default)]
    pub(crate) namespace: Option<String>,
}

impl PackageSettings {
    /// Reads the settings of a package. Unknown names are errors, because a typing error would be
    /// silent otherwise.
    fn of(package: &cargo_metadata::Package) -> Result<Self> {
        match package.metadata.get("opkit") {
            Some(settings) => Self::deserialize(settings).with_context(|| {
                let manifest = &package.manifest_path;
                format!("cannot read [package.metadata.opkit] in {manifest}")
            }),
            None => Ok(Self::default()),
        }
    }
}

impl Package {
    /// Finds an operator in the workspace of the current directory: the package `name` if it is
    /// given, otherwise the package that contains the current directory. Outside of such a package,
    /// the workspace must have only one operator.
    pub(crate) fn find(name: Option<&str>) -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().map_err(|error| {
            let message = error.to_string();
            let cause = message.rsplit("error: ").next().unwrap_or_default().trim();
            anyhow!("cannot read the cargo workspace of this directory: {cause}")
        })?;
        let operators: Result<Vec<Self>> = metadata
            .workspace_packages()
            .into_iter()
            .filter(|package| {
                let mut dependencies = package.dependencies.iter();
                dependencies.any(|it| it.name == "opkit" && it.kind == DependencyKind::Normal)
            })
            .filter_map(|package| {
                let (binary, directory) = (binary(package)?, package.manifest_path.parent()?);
                let settings = PackageSettings::of(package);
                Some(settings.map(|settings| Self {
                    name: package.name.to_string(),
                    binary,
                    directory: directory.into(),
                    workspace: metadata.workspace_root.clone().into(),
                    target: metadata.target_directory.clone().into(),
                    settings,
                }))
            })
            .collect();
        let here = std::env::current_dir().context("cannot read the current directory")?;
        choose(operators?, name, &here)
    }

    /// Returns the files that the operator is built from.
    pub(crate) fn sources(&self, executable: &Path) -> Sources {
        Sources::of(executable, &self.directory, &self.workspace)
    }

    /// Builds the operator; returns the path of its executable. The compiler's output goes to
    /// stderr.
    pub(crate) async fn build(&self, view: &mut View) -> Result<PathBuf> {
        view.line("build", &format!("cargo build --package {}", self.name));
        self.executable().await
    }

    /// Builds the operator; returns the path of its executable. cargo's output goes to stderr.
    pub(crate) async fn executable(&self) -> Result<PathBuf> {
        match self.cargo_build(Stdio::inherit()).await? {
            Ok(executable) => Ok(executable),
            Err(_) => bail!("{} does not compile: see cargo's output above", self.name),
        }
    }

    /// Builds the operator while a view is shown; returns the path of its executable, or the
    /// compiler's output.
    pub(crate) async fn rebuild(self) -> Result<Result<PathBuf, String>> {
        self.cargo_build(Stdio::piped()).await
    }

    async fn cargo_build(&self, stderr: Stdio) -> Result<Result<PathBuf, String>> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // The variables that `cargo run` sets for this command's own package would make the build
        // scripts of some dependencies (such as ring) run again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        if io::stderr().is_terminal() {
            command.arg("--color=always");
        }
        let child = command
            .args(["build", "--package", &self.name, "--bin", &self.binary])
            .arg("--message-format=json-render-diagnostics")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot run cargo")?;
        let mut group = BuildGroup::of(&child);
        let output = child.wait_with_output().await.context("cannot run cargo")?;
        group.0 = None;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let messages = Message::parse_stream(output.stdout.as_slice());
        let executable = messages.flatten().find_map(|message| match message {
            Message::CompilerArtifact(artifact) if artifact.target.name == self.binary => {
                artifact.executable
            }
            _ => None,
        });
        let executable = executable
            .with_context(|| format!("cargo built {} but reported no executable", self.name))?;
        Ok(Ok(executable.into()))
    }

    /// Returns the files in `config/samples`, sorted by name.
    pub(crate) fn samples(&self) -> Result<Vec<PathBuf>> {
        let directory = self.directory.join(SAMPLES);
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let fail = || format!("cannot read {}", directory.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).with_context(fail)? {
            let path = entry.with_context(fail)?.path();
            let is_kustomization = path.ends_with("kustomization.yaml");
            if is_yaml(&path) && !is_kustomization {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// Process group of cargo and its children. All of them are terminated when the build is cancelled.
struct BuildGroup(Option<Pid>);

impl BuildGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }
}

impl Drop for BuildGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The group may have ended by itself.
            let _ = kill_process_group(leader, Signal::TERM);
        }
    }
}

/// Returns the binary to run: the one that `default-run` selects, or else the one with the
/// package's name. If there is no such binary, returns the first one.
fn binary(package: &cargo_metadata::Package) -> Option<String> {
    let binaries = package.targets.iter().filter(|target| target.is_bin());
    let names: Vec<_> = binaries.map(|target| target.name.clone()).collect();
    let chosen = package.default_run.as_deref().unwrap_or(&package.name);
    let found = names.iter().find(|name| *name == chosen);
    found.or(names.first()).cloned()
}

/// Returns the operator `name` if it is given, otherwise the operator whose directory contains
/// `here`. If there is no such directory, returns the only operator.
fn choose(operators: Vec<Package>, name: Option<&str>, here: &Path) -> Result<Package> {
    let known: Vec<_> = operators.iter().map(|it| it.name.clone()).collect();
    let known = known.join(", ");
    if operators.is_empty() {
        let named = name
            .map(|name| format!(" named {name}"))
            .unwrap_or_default();
        bail!(
            "there is no operator{named} in this workspace (no package here depends on opkit and has a binary)"
        );
    }
    if let Some(name) = name {
        let found = operators.into_iter().find(|it| it.name == name);
        return found.with_context(|| {
            format!("there is no operator named {name} in this workspace (the operators here are {known})")
        });
    }
    let around = operators
        .iter()
        .filter(|it| here.starts_with(&it.directory));
    // A package may be inside the directory of another one.
    let current = around.max_by_key(|it| it.directory.as_os_str().len());
    match (current, operators.as_slice()) {
        (Some(one), _) | (None, [one]) => Ok(one.clone()),
        _ => bail!(
            "there are several operators in this workspace: {known}; choose one by its name: `opkit dev NAME`, or -p NAME"
        ),
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml")
}

#[cfg(test)]
mod tests;
