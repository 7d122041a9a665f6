//! The operator as a process: its errors when it cannot start, and its recovery after a kill.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use opkit::k8s_openapi::api::apps::v1::Deployment;
use opkit::operator::{OperatorPlan, PlannedEffect};
use opkit::prelude::*;
use opkit::serde_json;
use robot_operator::{Robot, RobotSpec, operator};
use tempfile::TempDir;

fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_robot-operator"));
    command.env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

/// Checks for exit code 1 and one sentence on stderr, after the log lines.
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

/// Writes a kubeconfig of the control plane to a new directory.
async fn kubeconfig(plane: &ControlPlane) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("kubeconfig");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    fs::write(&path, plane.listen(address).await.unwrap()).unwrap();
    (directory, path)
}

/// Running operator, which is killed at the latest when the test ends.
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

    /// Sends SIGKILL: the process cannot flush or report anything.
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
fn a_missing_kubeconfig_is_reported() {
    let output = binary()
        .args(["--kubeconfig", "/nowhere/kubeconfig"])
        .output()
        .unwrap();
    refused(&output, &["/nowhere/kubeconfig"]);
}

#[test]
fn an_invalid_kubeconfig_is_reported() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("broken");
    fs::write(&path, "clusters: [").unwrap();
    let output = binary().arg("--kubeconfig").arg(&path).output().unwrap();
    refused(&output, &["broken"]);
}

#[test]
fn an_unreachable_server_is_reported() {
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
async fn a_missing_kind_is_reported(plane: ControlPlane) -> opkit::Result {
    let (_directory, path) = kubeconfig(&plane).await;
    let run = tokio::task::spawn_blocking(move || binary().arg("--kubeconfig").arg(path).output());
    refused(
        &run.await??,
        &["does not serve the kind Robot (robot.opkit.dev/v1)", "CRD"],
    );
    Ok(())
}

#[opkit::test]
async fn a_killed_operator_converges_after_a_restart(plane: ControlPlane) -> opkit::Result {
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
    // The deployment is applied first: the rest of the reconcile is cut off.
    plane.eventually("robot-one", |_: &Deployment| true).await?;
    first.kill();

    let second = Process::start(&path);
    let ready = |expected| {
        move |robot: &Robot| {
            robot.is_ready()
                && robot
                    .status
                    .as_ref()
                    .is_some_and(|s| s.ready_replicas == expected)
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
    assert!(yaml.contains("image: robot-operator:0.1.0"), "{yaml}");
    let output = binary().arg("version").output().unwrap();
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .starts_with("robot-operator 0.1.0")
    );
}

#[opkit::test]
async fn the_binary_prints_a_plan(plane: ControlPlane) -> opkit::Result {
    let (_directory, path) = kubeconfig(&plane).await;
    plane.install(&operator()).await?;
    let spec = RobotSpec {
        image: "nginx".into(),
        replicas: 1,
        command: None,
    };
    plane.apply(Robot::new("robot-one", spec)).await?;
    let plan = move || {
        let mut command = binary();
        command.arg("plan").arg("--kubeconfig").arg(path).output()
    };
    let output = tokio::task::spawn_blocking(plan).await??;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let plan: OperatorPlan = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((plan.refused, plan.failures), (None, vec![]));
    let change = &plan.changes[0];
    assert_eq!(change.change, PlannedEffect::Created);
    assert_eq!(
        (change.kind.as_str(), change.name.as_str()),
        ("Deployment", "robot-one")
    );
    assert_eq!(change.reconciled[0].to_string(), "robot/robot-one");
    assert!(plane.get::<Deployment>("robot-one").await?.is_none());
    Ok(())
}

/// Sends SIGTERM while the server does not respond, so that the operator is never ready.
#[test]
fn a_signal_stops_a_start_that_hangs() {
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
    // The operator has sent a request, and gets no response.
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
