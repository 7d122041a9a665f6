//! The operator as a process of its own, as in a cluster.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::{
    activity::{self, Activity},
    package::Package,
    view::View,
};
use crate::control_plane::ControlPlane;

/// How often the operator is asked whether it works.
const LOOK: Duration = Duration::from_millis(20);
/// How long the operator gets to end by itself.
const STOP_GRACE: Duration = Duration::from_millis(1500);

/// What the operator prints as its manifests.
pub(crate) async fn manifests(executable: &Path) -> Result<String> {
    let output = Command::new(executable)
        .arg("manifests")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {} manifests", executable.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("the operator prints no manifests: {}", said.trim());
    }
    String::from_utf8(output.stdout).context("the operator's manifests are not text")
}

/// A running operator.
pub(crate) struct OperatorProcess {
    name: String,
    child: Child,
    log: Option<PathBuf>,
    debug_address_file: PathBuf,
}

impl OperatorProcess {
    /// Starts it against the control plane, with `arguments` of the user. Its log goes to stderr,
    /// or to a file while a live view has the terminal.
    pub(crate) fn start(
        package: &Package,
        executable: &Path,
        arguments: &[OsString],
        plane: &ControlPlane,
        view: &View,
    ) -> Result<Self> {
        let name = package.name.clone();
        let beside = |ending: &str| {
            plane
                .kubeconfig
                .path()
                .with_file_name(format!("{name}.{ending}"))
        };
        let debug_address_file = beside("debug-address");
        // That of an operator that was killed would lead us astray.
        let _ = fs::remove_file(&debug_address_file);
        let (log, stderr) = if view.is_live() {
            let path = beside("log");
            let file =
                File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            (Some(path), Stdio::from(file))
        } else {
            (None, Stdio::inherit())
        };
        let child = Command::new(executable)
            .arg("run")
            .arg("--kubeconfig")
            .arg(plane.kubeconfig.path())
            .args([
                "--debug-bind-address",
                "127.0.0.1:0",
                "--debug-address-file",
            ])
            .arg(&debug_address_file)
            // It does not run in a pod, which would have a namespace.
            .args(["--leader-election-namespace", "default"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", executable.display()))?;
        Ok(Self {
            name,
            child,
            log,
            debug_address_file,
        })
    }

    /// Where its log goes, if not to stderr.
    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// What it does; nothing while it does not answer.
    pub(crate) async fn activity(&self) -> Activity {
        match fs::read_to_string(&self.debug_address_file) {
            Ok(address) => activity::fetch(address.trim()).await.unwrap_or_default(),
            Err(_) => Activity::default(),
        }
    }

    /// Waits until it works; returns the names of its controllers.
    pub(crate) async fn running(&mut self) -> Result<Vec<String>> {
        loop {
            let activity = self.activity().await;
            if activity.running {
                return Ok(activity.controllers);
            }
            tokio::select! {
                error = self.failed() => return Err(error),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Waits until it ends, which it should not.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        let status = self.child.wait().await;
        let how = status.map_or_else(|error| error.to_string(), |status| describe(&status));
        match &self.log {
            Some(log) => anyhow!("{} ended with {how}: {}", self.name, last_words(log)),
            None => anyhow!("{} ended with {how}: see its log above", self.name),
        }
    }

    /// Asks it to stop, waits a little, then makes it.
    pub(crate) async fn stop(mut self) {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // It may have ended already, as Ctrl-C reaches the whole process group.
            let _ = kill_process(id, Signal::TERM);
        }
        if tokio::time::timeout(STOP_GRACE, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.kill().await;
        }
        let _ = fs::remove_file(&self.debug_address_file);
    }
}

fn describe(status: &ExitStatus) -> String {
    status
        .code()
        .map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// The last line of a log; where arguments are refused, the whole error without the advice.
fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let is_said = |line: &&str| !line.trim().is_empty();
    let refused = text.lines().skip_while(|line| !line.starts_with("error: "));
    let refused: Vec<_> = refused.take_while(is_said).map(str::trim).collect();
    if !refused.is_empty() {
        return refused.join(" ");
    }
    let last = text.lines().rev().find(is_said);
    last.map_or_else(|| format!("see {}", log.display()), str::to_owned)
}

#[cfg(test)]
mod tests;
