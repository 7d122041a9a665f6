//! Ctrl-C while cargo builds the operator.

use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};

use super::deploy::Cluster;
use super::*;

/// A cargo whose build, and a compiler that it starts, do not end by themselves.
const CARGO: &str = r#"#!/bin/sh
if [ "$1" = metadata ]; then exec REAL "$@"; fi
sh -c 'echo $$ >> PIDS; while true; do sleep 0.05; done' &
echo $$ >> PIDS
wait
"#;

/// Reports whether a process runs. An orphan stays as a zombie if no process waits for it.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|it| it.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

fn interrupted(directory: &Path, kubeconfig: &Path, arguments: &[&str]) {
    let pids = directory.join("pids");
    let _ = fs::remove_file(&pids);
    let cargo = directory.join("cargo");
    let script = CARGO
        .replace("REAL", env!("CARGO"))
        .replace("PIDS", pids.to_str().unwrap());
    fs::write(&cargo, script).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = opkit(directory);
    command.args(arguments).env("CARGO", &cargo);
    command.env("KUBECONFIG", kubeconfig);
    let mut child = Killed(command.stderr(Stdio::piped()).spawn().unwrap());
    let started = || fs::read_to_string(&pids).unwrap_or_default();
    wait(|| started().lines().count() == 2);
    let id = Pid::from_raw(child.0.id().cast_signed()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let mut status = None;
    wait(|| {
        status = child.0.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130), "{arguments:?}");
    let mut stderr = String::new();
    let pipe = child.0.stderr.as_mut().unwrap();
    std::io::Read::read_to_string(pipe, &mut stderr).unwrap();
    assert!(stderr.ends_with("opkit: interrupted\n"), "{stderr}");
    wait(|| started().lines().all(|pid| !runs(pid)));
}

#[tokio::test]
async fn cargo_ends_with_the_command() {
    let root = workspace("fn main() {}");
    let cluster = Cluster::start().await;
    let kubeconfig = cluster.place.root.path().join(".opkit/kubeconfig");
    for arguments in [
        &["manifests"][..],
        &["install"],
        &["deploy"],
        &["plan"],
        &["run"],
    ] {
        interrupted(root.path(), &kubeconfig, arguments);
    }
}
