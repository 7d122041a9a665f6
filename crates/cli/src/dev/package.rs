//! The operator's package: finding it in the workspace and building it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, anyhow, bail};
use cargo_metadata::{Message, MetadataCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::view::View;

/// Where a package keeps the objects that show it at work, as kubebuilder's projects do.
const SAMPLES: &str = "config/samples";

/// A package with a binary that is an operator.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    binary: String,
    directory: PathBuf,
}

impl Package {
    /// Finds the operator `name` in the workspace of the current directory.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().map_err(|error| {
            let said = error.to_string();
            let cause = said.rsplit("error: ").next().unwrap_or_default().trim();
            anyhow!("cannot read the cargo workspace of this directory: {cause}")
        })?;
        let operators: Vec<Self> = metadata
            .workspace_packages()
            .into_iter()
            .filter(|package| package.dependencies.iter().any(|d| d.name == "opkit"))
            .filter_map(|package| {
                let binary = package.targets.iter().find(|target| target.is_bin())?;
                Some(Self {
                    name: package.name.to_string(),
                    binary: binary.name.clone(),
                    directory: package.manifest_path.parent()?.into(),
                })
            })
            .collect();
        let known: Vec<_> = operators
            .iter()
            .map(|operator| operator.name.clone())
            .collect();
        operators
            .into_iter()
            .find(|operator| operator.name == name)
            .ok_or_else(|| {
                let known = match known.as_slice() {
                    [] => "no package here depends on opkit and has a binary".to_owned(),
                    names => format!("the operators here are {}", names.join(", ")),
                };
                anyhow!("there is no operator named {name} in this workspace ({known})")
            })
    }

    /// Builds the operator; returns its executable. What the compiler has to say goes to stderr.
    pub(crate) async fn build(&self, view: &mut View) -> Result<PathBuf> {
        view.line("build", &format!("cargo build --package {}", self.name));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        // What `cargo run` says of this command's own package would make the build scripts of some
        // dependencies, ring's among them, believe that something has changed.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        let child = command
            .args(["build", "--package", &self.name, "--bin", &self.binary])
            .arg("--message-format=json-render-diagnostics")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("cannot run cargo")?;
        let mut group = BuildGroup::of(&child);
        let output = child.wait_with_output().await.context("cannot run cargo")?;
        group.0 = None;
        if !output.status.success() {
            bail!("{} does not compile: see what cargo says above", self.name);
        }
        let messages = Message::parse_stream(output.stdout.as_slice());
        let executable = messages.flatten().find_map(|message| match message {
            Message::CompilerArtifact(artifact) if artifact.target.name == self.binary => {
                artifact.executable
            }
            _ => None,
        });
        executable
            .map(Into::into)
            .with_context(|| format!("cargo built {} and named no executable", self.name))
    }

    /// The files in `config/samples`, by name.
    pub(crate) fn samples(&self) -> Result<Vec<PathBuf>> {
        let directory = self.directory.join(SAMPLES);
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        let fail = || format!("cannot read {}", directory.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).with_context(fail)? {
            let path = entry.with_context(fail)?.path();
            if is_yaml(&path) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// cargo and all it has started, ended together when the build is cut short.
struct BuildGroup(Option<Pid>);

impl BuildGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }
}

impl Drop for BuildGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended by itself.
            let _ = kill_process_group(leader, Signal::TERM);
        }
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml")
}
