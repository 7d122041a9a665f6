//! Programs that run beside the commands of a guide.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

use crate::project::{command_in, opkit, text};

/// Time limit of each wait, long enough for a slow machine; a passing test needs far less.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// `opkit dev`, which is killed when the test ends, also if the test fails.
pub(crate) struct Dev {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Dev {
    /// Runs `opkit dev` until it reports that an object, such as `Greeting hello`, was reconciled.
    pub(crate) fn start(mut command: Command, object: &str) -> Self {
        command.arg("dev").stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        drain(child.stderr.take().unwrap());
        let mut dev = Self { child, lines };
        dev.until(|line| line.contains(object) && line.contains("reconciled"));
        dev
    }

    /// Waits for a line.
    pub(crate) fn until(&mut self, is_meant: impl Fn(&str) -> bool) {
        let mut shown = String::new();
        for line in &mut self.lines {
            let line = line.unwrap();
            if is_meant(&line) {
                return;
            }
            shown += &line;
            shown.push('\n');
        }
        panic!("opkit dev ended: {shown}");
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn stop(&mut self) {
        let process = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(process, Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Reads the output of a program, which would wait for a full pipe otherwise.
fn drain(mut output: impl Read + Send + 'static) {
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
}

/// `opkit cluster up`, which is killed when the test ends.
pub(crate) struct Cluster {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
}

impl Cluster {
    /// Starts the control plane, and waits until it listens.
    pub(crate) fn start(project: &Path) -> Self {
        let kubeconfig = project.join(".opkit/cluster.kubeconfig");
        let mut command = command_in(project, opkit());
        command
            .args(["cluster", "up", "--kubeconfig-out"])
            .arg(&kubeconfig);
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut cluster = Self { child, kubeconfig };
        let lines = BufReader::new(cluster.child.stdout.take().unwrap()).lines();
        let mut ready = lines.map_while(Result::ok);
        assert!(
            ready.any(|line| line.contains("kubeconfig")),
            "the control plane ended"
        );
        cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// kubectl, with the kubeconfig of a project.
pub(crate) struct Kubectl {
    program: PathBuf,
    directory: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// Finds kubectl on the PATH, or in the directory of Kubernetes' binaries. Without it, the
    /// steps that need it are reported as skipped.
    pub(crate) fn find(what: &str, directory: &Path, kubeconfig: &str) -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty());
        let paths = variable("PATH").unwrap_or_default();
        let directories = std::env::split_paths(&paths).map(|it| it.join("kubectl"));
        let assets = variable("KUBEBUILDER_ASSETS").map(|it| Path::new(&it).join("kubectl"));
        let own = variable("TEST_ASSET_KUBECTL").map(PathBuf::from);
        let mut all = own.into_iter().chain(assets).chain(directories);
        let found = all.find(|path| path.is_file());
        if found.is_none() {
            skipped(
                what,
                "there is no kubectl on the PATH or in KUBEBUILDER_ASSETS",
            );
        }
        Some(Self {
            program: found?,
            directory: directory.to_owned(),
            kubeconfig: kubeconfig.into(),
        })
    }

    /// Runs kubectl, which must succeed, and returns its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut kubectl = command_in(&self.directory, &self.program);
        kubectl.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        let output = kubectl.output().unwrap();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {out}{errors}");
        out
    }

    /// Waits until a field of an object has a value.
    pub(crate) fn until(&self, object: [&str; 2], path: &str, expected: &str) {
        let start = SystemTime::now();
        let format = format!("jsonpath={path}");
        loop {
            let found = self.run(&["get", object[0], object[1], "-o", &format]);
            if found == expected {
                return;
            }
            let waited = start.elapsed().unwrap_or_default();
            assert!(waited < WAIT_MAX, "{object:?} {path} is {found:?}");
        }
    }
}

/// Reports whether the tests run on real Kubernetes. Then only those run that need it.
pub(crate) fn is_real(test: &str) -> bool {
    let plane = std::env::var("OPKIT_CONTROL_PLANE").unwrap_or_default();
    let is_real = !matches!(plane.as_str(), "" | "embedded");
    if is_real {
        skipped(test, "it uses the embedded control plane");
    }
    is_real
}

/// Prints that a test, or a part of it, did not run, as `#[opkit::test]` does.
#[expect(clippy::print_stderr, reason = "what did not run must be seen")]
pub(crate) fn skipped(what: &str, reason: &str) {
    eprintln!("SKIPPED {what}: {reason}");
}
