//! Supervisor that stops the processes when the test ends.
//!
//! A shell in its own process group starts the processes and reads a pipe from this process. When
//! this process ends (even by SIGKILL, when none of its code runs any more) the kernel closes the
//! pipe. The shell then kills the processes and removes the directory. A signal to the test's
//! process group does not reach the shell.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};
use tokio_util::task::TaskTracker;

use super::BinariesError;

const SCRIPT: &str = include_str!("watchdog.sh");
/// Time limit for stopping all processes.
const END_MAX: Duration = Duration::from_secs(10);

/// Process that ended before it was stopped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ended {
    pub(crate) name: String,
    /// Exit code; 128 plus the signal's number if a signal ended the process.
    pub(crate) code: String,
}

/// Handle of the shell that supervises the processes, and of the directory that the shell removes
/// when the shell ends.
#[derive(Debug)]
pub(crate) struct Watchdog {
    directory: PathBuf,
    /// Standard input of the supervising shell; `None` after the shell was asked to stop.
    pipe: Arc<Mutex<Option<ChildStdin>>>,
    ended: watch::Receiver<Option<Ended>>,
    /// Task that reads the output of the supervising shell and waits until the shell exits.
    tasks: TaskTracker,
}

impl Watchdog {
    /// Starts the supervising shell, which creates `directory`.
    pub(crate) async fn start(directory: PathBuf) -> Result<Self, BinariesError> {
        let failed = |cause| BinariesError::Watchdog { cause };
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "opkit-watchdog"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A program that reads the test's output to its end must not wait for the shell.
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (Some(pipe), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("the shell has no pipes")));
        };
        let mut lines = BufReader::new(stdout).lines();
        if lines.next_line().await.map_err(failed)?.as_deref() != Some("ready") {
            let cause = format!("the shell cannot create {}", directory.display());
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

    /// Returns the directory of the processes' data.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path of a process's log.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    /// Writes a file into the directory of the processes' data.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, BinariesError> {
        let path = self.directory.join(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(cause) => Err(BinariesError::Write { path, cause }),
        }
    }

    /// Starts a process: an executable and its arguments, none of which contains a line break.
    pub(crate) async fn run(
        &self,
        name: &'static str,
        executable: &Path,
        arguments: &[String],
    ) -> Result<(), BinariesError> {
        let text = format!("{}\n{}\n", executable.display(), arguments.join("\n"));
        self.write(&format!("{name}.args"), &text)?;
        send(&self.pipe, &format!("start {name}\n")).await;
        Ok(())
    }

    /// Returns a receiver of the first process that ended by itself.
    pub(crate) fn ended(&self) -> watch::Receiver<Option<Ended>> {
        self.ended.clone()
    }

    /// Stops all processes and removes the directory, except the logs if `keep_logs` is set.
    pub(crate) async fn end(&self, keep_logs: bool) {
        if keep_logs {
            send(&self.pipe, "keep\n").await;
        }
        self.pipe.lock().await.take();
        // A process cannot ignore SIGKILL, so this takes milliseconds.
        let _ = tokio::time::timeout(END_MAX, self.tasks.wait()).await;
    }
}

/// Reads the lines in which the supervising shell reports that a process has ended. On the first
/// report, sends it to `ended` and stops the other processes, because requests to an incomplete
/// control plane may hang. The logs are kept.
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
            send(&pipe, "keep\n").await;
            pipe.lock().await.take();
            let (name, code) = (name.to_owned(), code.to_owned());
            ended.send_replace(Some(Ended { name, code }));
        }
    }
    let _ = child.wait().await;
}

/// Writes a line to the supervising shell. The line is dropped if the shell has ended, which
/// [`listen`] notices.
async fn send(pipe: &Mutex<Option<ChildStdin>>, line: &str) {
    if let Some(pipe) = pipe.lock().await.as_mut() {
        let _ = pipe.write_all(line.as_bytes()).await;
        let _ = pipe.flush().await;
    }
}
