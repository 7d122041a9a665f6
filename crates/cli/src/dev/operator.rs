//! The operator as a separate process, as in a cluster.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use opkit_debug::Activity;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::package::Package;
use super::target::Connection;
use super::view::View;
use super::{activity, install};

/// Interval between two requests for the operator's activity.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time that the operator gets to stop by itself after SIGTERM.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// Namespace of the Lease. The operator does not run in a pod, so there is no default namespace.
const LEASE_NAMESPACE: [&str; 2] = ["--leader-election-namespace", "default"];

/// Namespace of an operator that watches that of its pod: outside of a pod, it watches that of the
/// kubeconfig.
const WATCHED_NAMESPACE: [&str; 2] = ["--namespace", "default"];

/// Returns the output of the operator's command `manifests` with the user's `arguments`, on which
/// the operator's roles depend.
pub(crate) async fn manifests(executable: &Path, arguments: &[OsString]) -> Result<String> {
    let printed = print(executable, &[], arguments).await?;
    match is_namespaced(&printed)? {
        true => print(executable, &WATCHED_NAMESPACE, arguments).await,
        false => Ok(printed),
    }
}

/// Reports whether the manifests are those of an operator that watches the namespace of its pod.
fn is_namespaced(manifests: &str) -> Result<bool> {
    let objects = install::parse(manifests)
        .context("cannot parse the output of the operator's command `manifests`")?;
    let path = ["spec", "template", "spec", "containers"];
    let containers = objects.iter().filter_map(|object| object.get(&path));
    let containers = containers.filter_map(Value::as_array).flatten();
    let variables = containers.filter_map(|it| it.get("env")?.as_array());
    Ok(variables.flatten().any(|variable| {
        let field = variable.pointer("/valueFrom/fieldRef/fieldPath");
        variable
            .get("name")
            .is_some_and(|it| it == "WATCH_NAMESPACE")
            && field.is_some_and(|it| it == "metadata.namespace")
    }))
}

async fn print(executable: &Path, flags: &[&str], arguments: &[OsString]) -> Result<String> {
    let output = Command::new(executable)
        .arg("manifests")
        .args(LEASE_NAMESPACE)
        .args(flags)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {} manifests", executable.display()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "the operator's command `manifests` failed: {}",
            stderr.trim()
        );
    }
    String::from_utf8(output.stdout).context("the operator's manifests are not text")
}

/// Command line of an operator that works on a control plane.
#[derive(Debug)]
pub(crate) struct OperatorCommand {
    pub(crate) executable: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Value of `KUBECONFIG`, if it must be set.
    pub(crate) kubeconfig: Option<OsString>,
    /// File that the operator writes the address of its debug endpoint to.
    pub(crate) debug_address_file: PathBuf,
    /// Directory for the operator's log.
    directory: PathBuf,
}

impl OperatorCommand {
    /// Returns the command line, with the user's `arguments` at its end.
    pub(crate) fn new(
        package: &Package,
        executable: &Path,
        arguments: &[OsString],
        connection: Connection,
    ) -> Self {
        let file = format!("{}.debug-address", package.name);
        let debug_address_file = connection.directory.join(file);
        // The file may be left from an operator that was killed, with an old address.
        let _ = fs::remove_file(&debug_address_file);
        let mut all = vec![OsString::from("run")];
        all.extend(connection.arguments);
        all.extend(
            [
                "--debug-bind-address",
                "127.0.0.1:0",
                "--debug-address-file",
            ]
            .map(Into::into),
        );
        all.push(debug_address_file.clone().into());
        all.extend(LEASE_NAMESPACE.map(Into::into));
        all.extend(arguments.iter().cloned());
        Self {
            executable: executable.to_owned(),
            arguments: all,
            kubeconfig: connection.kubeconfig,
            debug_address_file,
            directory: connection.directory,
        }
    }

    /// Returns the activity of the operator that was started with this command line. It is empty
    /// while the operator does not respond.
    pub(crate) async fn activity(&self) -> Activity {
        activity::of_file(&self.debug_address_file).await
    }
}

/// A running operator.
pub(crate) struct OperatorProcess {
    name: String,
    child: Child,
    log: Option<PathBuf>,
    line: OperatorCommand,
}

impl OperatorProcess {
    /// Starts the operator. Its log goes to stderr, or to a file while a live view uses the
    /// terminal.
    pub(crate) fn start(package: &Package, line: OperatorCommand, view: &View) -> Result<Self> {
        let name = package.name.clone();
        let (log, stderr) = if view.is_live() {
            let path = line.directory.join(format!("{name}.log"));
            let file =
                File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            (Some(path), Stdio::from(file))
        } else {
            (None, Stdio::inherit())
        };
        let mut command = Command::new(&line.executable);
        if let Some(kubeconfig) = &line.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let child = command
            .args(&line.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", line.executable.display()))?;
        Ok(Self {
            name,
            child,
            log,
            line,
        })
    }

    /// Returns the file that the log goes to, or `None` for stderr.
    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// Returns the file that the operator writes the address of its debug endpoint to.
    pub(crate) fn debug_address_file(&self) -> &Path {
        &self.line.debug_address_file
    }

    /// Returns the operator's activity, which is empty while the operator does not respond.
    pub(crate) async fn activity(&self) -> Activity {
        self.line.activity().await
    }

    /// Waits until the operator has started its workers; returns the names of its controllers.
    pub(crate) async fn wait_until_running(&mut self) -> Result<Vec<String>> {
        loop {
            let activity = self.activity().await;
            if activity.running {
                return Ok(activity.controllers);
            }
            tokio::select! {
                error = self.wait_until_ended() => return Err(error),
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Waits until the process ends, and returns an error with its exit code and last log line.
    pub(crate) async fn wait_until_ended(&mut self) -> anyhow::Error {
        let status = self.child.wait().await;
        let how = status.map_or_else(|error| error.to_string(), |status| describe(&status));
        match &self.log {
            Some(log) => anyhow!("{} ended with {how}: {}", self.name, last_error(log)),
            None => anyhow!("{} ended with {how}: see its log above", self.name),
        }
    }

    /// Sends SIGTERM, waits for [`STOP_GRACE`], then kills the process.
    pub(crate) async fn stop(mut self) {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // The process may have ended already, because Ctrl-C reaches the whole process group.
            let _ = kill_process(id, Signal::TERM);
        }
        if tokio::time::timeout(STOP_GRACE, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.kill().await;
        }
        let _ = fs::remove_file(&self.line.debug_address_file);
    }
}

fn describe(status: &ExitStatus) -> String {
    status
        .code()
        .map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// Returns the last line of a log. If the operator refused its arguments, returns the complete
/// error of clap instead, without the advice after the error.
fn last_error(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let is_not_blank = |line: &&str| !line.trim().is_empty();
    let refused = text.lines().skip_while(|line| !line.starts_with("error: "));
    let refused: Vec<_> = refused.take_while(is_not_blank).map(str::trim).collect();
    if !refused.is_empty() {
        return refused.join(" ");
    }
    let last = text.lines().rev().find(is_not_blank);
    last.map_or_else(|| format!("see {}", log.display()), str::to_owned)
}

#[cfg(test)]
mod tests;
