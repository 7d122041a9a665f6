//! Plugins: programs `opkit-NAME` on the search path, which `opkit NAME` runs.
//!
//! A plugin reads the model of the operator in the current directory from its standard input, as
//! JSON; the input is empty if there is no operator. Its exit code is that of `opkit`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::deploy::{self, OperatorArgs, OutputFormat, Printer};
use crate::dev::package::Package;
use crate::output;

/// Start of the names of all plugins.
const PREFIX: &str = "opkit-";

/// Arguments of `opkit plugins`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  opkit plugins
A plugin is a program `opkit-NAME` on the PATH; `opkit NAME` runs it. Its standard input is the
model of the operator in the current directory, as JSON, or empty; OPKIT is the path of opkit.")]
pub(crate) struct PluginsArgs {
    /// Print the plugins as one document [default: a line for each]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// A program that extends this command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plugin {
    name: String,
    path: PathBuf,
    /// Whether a command of opkit has the name, so that the plugin is never called.
    is_hidden: bool,
}

impl PluginsArgs {
    /// Prints the plugins on the search path. `commands` are the names of opkit's own commands.
    pub(crate) fn run(&self, commands: &[String]) -> Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let plugins = all(&path, commands);
        if let Some(format) = self.output {
            let plugins: Vec<_> = plugins
                .iter()
                .map(|it| json!({"name": it.name, "path": it.path, "hidden": it.is_hidden}))
                .collect();
            return deploy::print(format, &json!({ "plugins": plugins }));
        }
        if plugins.is_empty() {
            output::write("there is no program opkit-NAME on the PATH\n");
        }
        for plugin in plugins {
            let path = output::plain(&plugin.path.display().to_string());
            let note = match plugin.is_hidden {
                true => "   never called: opkit has a command of this name",
                false => "",
            };
            output::line(&output::plain(&plugin.name), &format!("{path}{note}"));
        }
        Ok(())
    }
}

/// Returns the plugin with a name, the first on the search path.
pub(crate) fn find(name: &OsStr) -> Option<Plugin> {
    let name = name.to_str()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    all(&path, &[]).into_iter().find(|it| it.name == name)
}

/// Returns the plugins in the directories of a search path, sorted by name. A program that an
/// earlier directory has already is left out.
fn all(path: &OsStr, commands: &[String]) -> Vec<Plugin> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for directory in std::env::split_paths(path) {
        // A directory that does not exist has no programs.
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().and_then(OsStr::to_str);
            let Some(name) = name.and_then(|it| it.strip_prefix(PREFIX)) else {
                continue;
            };
            if name.is_empty() || !is_executable(&path) || !names.insert(name.to_owned()) {
                continue;
            }
            found.push(Plugin {
                name: name.to_owned(),
                is_hidden: commands.iter().any(|it| it == name),
                path,
            });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn is_executable(path: &Path) -> bool {
    let metadata = fs::metadata(path);
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

impl Plugin {
    /// Runs the plugin, and returns its exit code.
    pub(crate) async fn run(self, arguments: Vec<OsString>) -> Result<ExitCode> {
        let model = model().await?;
        let failed = || format!("cannot run {}", self.path.display());
        let mut command = Command::new(&self.path);
        command.args(arguments).kill_on_drop(true);
        if let Ok(opkit) = std::env::current_exe() {
            command.env("OPKIT", opkit);
        }
        let mut child = command
            .stdin(match &model {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .spawn()
            .with_context(failed)?;
        let input = child.stdin.take();
        let write = async {
            if let (Some(mut input), Some(model)) = (input, model) {
                // A plugin need not read its input.
                let _ = input.write_all(model.as_bytes()).await;
            }
        };
        let (status, ()) = tokio::join!(child.wait(), write);
        Ok(code(&status.with_context(failed)?))
    }
}

/// Returns the model of the operator in the current directory, or `None` if there is no operator.
async fn model() -> Result<Option<String>> {
    if Package::find(None).is_err() {
        return Ok(None);
    }
    let operator = OperatorArgs::of_current_directory();
    let built = operator.build(&[], &Printer::new(true)).await?;
    Ok(Some(serde_json::to_string(&built.model)?))
}

/// Returns the exit code of a process; that of a process that a signal ended is as in a shell.
fn code(status: &ExitStatus) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => signal.saturating_add(128),
        (None, None) => 1,
    };
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}

#[cfg(test)]
mod tests;
