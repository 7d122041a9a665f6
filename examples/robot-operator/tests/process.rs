//! The operator as a process: what it says when it cannot work, and what is left when it is killed.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use opkit::k8s_openapi::api::apps::v1::Deployment;
use opkit::prelude::*;
use robot_operator::{Robot, RobotSpec, operator};
use tempfile::TempDir;

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_robot-operator"));
    command.env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

/// Exit code 1 and one sentence on stderr, after whatever was logged.
fn refused(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let sentence = stderr.lines().last().unwrap_or_default();
    assert!(sentence.starts_with("robot-operator: "), "{stderr}");
    for word in words {
        assert!(sentence.contains(word), "{word:?} is not in {sentence:?}");
    }
    assert!(
        !stderr.contains("panicked") && !stderr.contains("stack backtrace"),
        "{stderr}"
    );
}

/// A kubeconfig that leads to the control plane, in a directory of its own.
async fn kubeconfig(plane: &ControlPlane) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("kubeconfig");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    fs::write(&path, plane.listen(address).await.unwrap()).unwrap();
    (directory, path)
}

/// A running operator, killed with the test at the latest.
struct Process(Child);

impl Process {
    fn start(kubeconfig: &Path) -> Self {
        let mut command = binary();
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// SIGKILL: nothing is flushed, nothing is told.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_missing_kubeconfig_is_named() {
    let output = binary()
        .args(["--kubeconfig", "/nowhere/kubeconfig"])
        .output()
        .unwrap();
    refused(&output, &["/nowhere/kubeconfig"]);
}

#[test]
fn a_broken_kubeconfig_is_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("broken");
    fs::write(&path, "clusters: [").unwrap();
    let output = binary().arg("--kubeconfig").arg(&path).output().unwrap();
    refused(&output, &["broken"]);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("kubeconfig");
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let config = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, \
         clusters: [{{name: c, cluster: {{server: 'https://{free}'}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    fs::write(&path, config).unwrap();
    let output = binary().arg("--kubeconfig").arg(&path).output().unwrap();
    refused(&output, &["Connection refused"]);
}

#[opkit::test]
async fn a_cluster_that_does_not_know_the_kind_is_said(plane: ControlPlane) -> opkit::Result {
    let (_directory, path) = kubeconfig(&plane).await;
    let run = tokio::task::spawn_blocking(move || binary().arg("--kubeconfig").arg(path).output());
    refused(
        &run.await??,
        &["does not know the kind Robot (robot.opkit.dev/v1)", "CRD"],
    );
    Ok(())
}

#[opkit::test]
async fn a_killed_operator_is_started_again_and_converges(plane: ControlPlane) -> opkit::Result {
    let (_directory, path) = kubeconfig(&plane).await;
    plane.install(&operator()).await?;
    let robot = |replicas| {
        Robot::new(
            "robot-one",
            RobotSpec {
                image: "nginx".into(),
                replicas,
                command: None,
            },
        )
    };
    let first = Process::start(&path);
    plane.apply(robot(2)).await?;
    // The deployment is made first: what follows it in the same reconcile is cut off.
    plane.eventually("robot-one", |_: &Deployment| true).await?;
    first.kill();

    let second = Process::start(&path);
    let ready = |wanted| {
        move |robot: &Robot| {
            robot.is_ready()
                && robot
                    .status
                    .as_ref()
                    .is_some_and(|s| s.ready_replicas == wanted)
        }
    };
    plane.eventually("robot-one", ready(2)).await?;
    second.kill();
    plane.apply(robot(3)).await?;
    let _third = Process::start(&path);
    plane.eventually("robot-one", ready(3)).await?;
    Ok(())
}

#[test]
fn the_binary_prints_its_crds_and_its_version() {
    let output = binary().arg("manifests").output().unwrap();
    let yaml = String::from_utf8(output.stdout).unwrap();
    assert!(yaml.contains("name: robots.robot.opkit.dev"), "{yaml}");
    assert!(!yaml.contains("kind: Deployment"), "{yaml}");
    let output = binary().arg("version").output().unwrap();
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .starts_with("robot-operator 0.1.0")
    );
}

/// SIGTERM while the server says nothing, so that nothing is ever ready.
#[test]
fn a_signal_ends_a_start_that_hangs() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = silent.local_addr().unwrap();
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("kubeconfig");
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{}}}}]\ncurrent-context: a\n"
    );
    fs::write(&path, kubeconfig).unwrap();
    let mut process = Process::start(&path);
    // It has asked, and gets no answer.
    let _connection = silent.accept().unwrap();
    let id = process.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
}
