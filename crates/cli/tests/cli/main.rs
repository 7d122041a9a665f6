//! Tests of the command as a process: its exit code and its output.

#![expect(clippy::unwrap_used, reason = "a test may unwrap")]

mod connection;
mod crd;
mod deploy;
mod dev;
mod doctor;
mod golden;
mod guides;
mod help;
mod import;
mod interrupt;
mod lint;
mod migrate;
mod plan;
mod plugins;
mod project;
mod prompts;
mod terminal;
mod types;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use tempfile::TempDir;

use golden::{golden, masked};

/// Time limit of each wait, long enough for a slow machine; a passing test needs far less.
const WAIT_MAX: Duration = Duration::from_secs(60);

fn opkit(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opkit"));
    command.current_dir(directory).stdin(Stdio::null());
    // Not this test's target directory: cargo would wait for cargo, and use the operator of another
    // test.
    command.env("CARGO_TARGET_DIR", directory.join("target"));
    command
}

/// Creates a workspace with one operator, `source`, that depends on a package named opkit.
fn workspace(source: &str) -> TempDir {
    let root = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"opkit\", \"op\"]\nresolver = \"3\"\n",
    );
    write(
        "opkit/Cargo.toml",
        "[package]\nname = \"opkit\"\nversion = \"0.0.0\"\nedition = \"2024\"\n",
    );
    write("opkit/src/lib.rs", "");
    let manifest = "[package]\nname = \"op\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
                    [dependencies]\nopkit = { path = \"../opkit\" }\n";
    write("op/Cargo.toml", manifest);
    write("op/src/main.rs", source);
    root
}

/// Checks that the command failed with exit code 1, and that its last line is one sentence with
/// these words.
fn refused(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let sentence = stderr.lines().last().unwrap_or_default();
    assert!(sentence.starts_with("opkit: "), "{stderr}");
    for word in words {
        assert!(sentence.contains(word), "{word:?} is not in {sentence:?}");
    }
    assert!(
        !stderr.contains("panicked") && !stderr.contains("stack backtrace"),
        "{stderr}"
    );
}

#[test]
fn an_unknown_operator_is_reported_with_the_known_ones() {
    let root = workspace("fn main() {}");
    let output = opkit(root.path())
        .args(["dev", "no-such-operator"])
        .output()
        .unwrap();
    refused(&output, &["no-such-operator", "the operators here are op"]);
}

#[test]
fn a_directory_without_a_workspace_is_reported() {
    let root = TempDir::new().unwrap();
    let output = opkit(root.path()).args(["dev", "op"]).output().unwrap();
    refused(&output, &["cannot read the cargo workspace"]);
}

#[test]
fn a_busy_port_is_reported() {
    let root = workspace("fn main() {}");
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    for command in [["dev", "op"], ["cluster", "up"]] {
        let output = opkit(root.path())
            .args(command)
            .args(["--port", &port])
            .output()
            .unwrap();
        refused(
            &output,
            &[
                &format!("127.0.0.1:{port}"),
                "in use by another process",
                "--port",
            ],
        );
    }
}

#[test]
fn an_unwritable_kubeconfig_is_reported() {
    let root = workspace("fn main() {}");
    let path = "/proc/nowhere/kubeconfig";
    let output = opkit(root.path())
        .args(["dev", "op", "--kubeconfig-out", path])
        .output()
        .unwrap();
    refused(&output, &["/proc/nowhere"]);
}

#[test]
fn a_file_of_another_program_is_never_overwritten() {
    let root = TempDir::new().unwrap();
    let precious = root.path().join("config");
    fs::write(&precious, "precious").unwrap();
    let args = ["cluster", "up", "--kubeconfig-out", "config"];
    let output = opkit(root.path()).args(args).output().unwrap();
    refused(&output, &["config exists and is not a kubeconfig of opkit"]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
}

#[test]
fn a_compile_error_is_reported_after_cargos_output() {
    let root = workspace("fn main() { missing() }");
    let output = opkit(root.path()).args(["dev", "op"]).output().unwrap();
    refused(&output, &["op does not compile"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("cannot find function `missing`"),
        "{stderr}"
    );
}

#[test]
fn an_operator_that_exits_is_reported() {
    let root = workspace(
        "fn main() { if std::env::args().any(|a| a == \"run\") { std::process::exit(3) } }",
    );
    let output = opkit(root.path()).args(["dev", "op"]).output().unwrap();
    refused(&output, &["op ended with exit code 3"]);
}

#[test]
fn a_wrong_audit_policy_is_reported() {
    let root = TempDir::new().unwrap();
    let up = || {
        let mut command = opkit(root.path());
        command.args(["cluster", "up", "--audit-policy-file", "policy.yaml"]);
        command
    };
    let output = up().args(["--audit-log-path", "-"]).output().unwrap();
    refused(&output, &["cannot read policy.yaml"]);
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Loud}]}";
    fs::write(root.path().join("policy.yaml"), policy).unwrap();
    let output = up().args(["--audit-log-path", "-"]).output().unwrap();
    let error = "rules[0].level: Unsupported value: \"Loud\"";
    refused(&output, &["audit policy", error]);
    let output = up().output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--audit-log-path <PATH>"), "{stderr}");
}

#[test]
fn a_control_plane_runs_until_a_signal() {
    let root = TempDir::new().unwrap();
    let mut child = Killed(opkit(root.path()).args(["cluster", "up"]).spawn().unwrap());
    let kubeconfig = root.path().join(".opkit/kubeconfig");
    wait(|| fs::read_to_string(&kubeconfig).is_ok_and(|text| text.contains("https://127.0.0.1:")));
    let id = rustix::process::Pid::from_raw(child.0.id().cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut status = None;
    wait(|| {
        status = child.0.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
    assert!(!kubeconfig.exists(), "the kubeconfig is not removed");
}

/// Returns a client of the user in a kubeconfig.
async fn client(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
    kube::Client::try_from(config.await.unwrap()).unwrap()
}

/// Child process that is killed when the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for another process, whose clock cannot be paused.
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn wait(mut done: impl FnMut() -> bool) {
    let step = Duration::from_millis(20);
    for _ in 0..WAIT_MAX.as_millis() / step.as_millis() {
        if done() {
            return;
        }
        std::thread::sleep(step);
    }
    panic!("the wait takes longer than {WAIT_MAX:?}");
}
