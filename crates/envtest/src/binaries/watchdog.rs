//! Processes that cannot outlive the test.
//!
//! A shell in a process group of its own starts them and reads a pipe from this process. However
//! this process ends (even by SIGKILL, when nothing of ours runs any more) the kernel closes the
//! pipe, and at its end the shell kills what it started and removes the directory. A signal to the
//! test's group does not reach it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex, watch},
};
use tokio_util::task::TaskTracker;

use super::BinariesError;

const SCRIPT: &str = include_str!("watchdog.sh");
/// How long ending everything may take.
const END_MAX: Duration = Duration::from_secs(10);

/// A process that ended before it was told to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ended {
    pub(crate) name: String,
    /// Above 128, the signal and 128.
    pub(crate) code: String,
}

/// The shell, and the directory that ends with it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    directory: PathBuf,
    /// None once it was told to end.
    pipe: Arc<Mutex<Option<ChildStdin>>>,
    ended: watch::Receiver<Option<Ended>>,
    /// The one that listens to the shell and waits for its end.
    tasks: TaskTracker,
}

impl Watchdog {
    /// Starts the shell, which makes `directory`.
    pub(crate) async fn start(directory: PathBuf) -> Result<Self, BinariesError> {
        let failed = |cause| BinariesError::Watchdog { cause };
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "opkit-watchdog"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Whoever reads the test's output to its end shall not wait for the shell.
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (Some(pipe), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("the shell has no pipes")));
        };
        let mut lines = BufReader::new(stdout).lines();
        if lines.next_line().await.map_err(failed)?.as_deref() != Some("ready") {
            let cause = format!("the shell cannot make {}", directory.display());
            return Err(failed(std::io::Error::other(cause)));
        }
        let pipe = Arc::new(Mutex::new(Some(pipe)));
        let (sender, ended) = watch::channel(None);
        let tasks = TaskTracker::new();
        tasks.spawn(listen(child, lines, pipe.clone(), sender));
        tasks.close();
        Ok(Self {
            directory,
            pipe,
            ended,
            tasks,
        })
    }

    /// Where the processes may leave things.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where a process says what it does.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    /// Writes a file into the directory.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, BinariesError> {
        let path = self.directory.join(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(cause) => Err(BinariesError::Write { path, cause }),
        }
    }

    /// Starts a process: an executable and its arguments, none with a line break in it.
    pub(crate) async fn run(
        &self,
        name: &'static str,
        executable: &Path,
        arguments: &[String],
    ) -> Result<(), BinariesError> {
        let text = format!("{}\n{}\n", executable.display(), arguments.join("\n"));
        self.write(&format!("{name}.args"), &text)?;
        tell(&self.pipe, &format!("start {name}\n")).await;
        Ok(())
    }

    /// The first process that ended by itself, if one did.
    pub(crate) fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.ended.clone()
    }

    /// Ends everything and removes the directory, but for the logs if they are to be kept.
    pub(crate) async fn end(&self, keep_logs: bool) {
        if keep_logs {
            tell(&self.pipe, "keep\n").await;
        }
        self.pipe.lock().await.take();
        // SIGKILL cannot be refused, so this is a matter of milliseconds.
        let _ = tokio::time::timeout(END_MAX, self.tasks.wait()).await;
    }
}

/// Says what the shell says. A control plane without one of its parts answers late or never, so the
/// first to end ends the others, and the logs stay.
async fn listen(
    mut child: Child,
    mut lines: Lines<BufReader<ChildStdout>>,
    pipe: Arc<Mutex<Option<ChildStdin>>>,
    ended: watch::Sender<Option<Ended>>,
) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut words = line.split_whitespace();
        if let (Some("ended"), Some(name), Some(code)) = (words.next(), words.next(), words.next())
            && pipe.lock().await.is_some()
        {
            tell(&pipe, "keep\n").await;
            pipe.lock().await.take();
            let (name, code) = (name.to_owned(), code.to_owned());
            ended.send_replace(Some(Ended { name, code }));
        }
    }
    let _ = child.wait().await;
}

/// A shell that has ended hears nothing; [`listen`] knows then.
async fn tell(pipe: &Mutex<Option<ChildStdin>>, line: &str) {
    if let Some(pipe) = pipe.lock().await.as_mut() {
        let _ = pipe.write_all(line.as_bytes()).await;
        let _ = pipe.flush().await;
    }
}
