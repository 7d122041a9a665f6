//! The audit log: a file, or standard output, with one event in JSON on each line.
//!
//! Requests put their events into a queue, and a task writes them, so that no request waits for the
//! disk. If the queue is full because the disk is too slow, new events are lost: the requests are
//! executed nevertheless, and the task logs the number of lost events.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Maximum number of events that wait to be written. Kubernetes has the same default in its mode
/// without blocking.
const QUEUE: usize = 10_000;
/// Maximum number of events that are written at once.
const BATCH: usize = 400;
/// Time without an event after which the log of a stopped server is closed. Requests that end
/// because the server stops still write their last events.
const DRAIN: Duration = Duration::from_millis(50);

/// Sends events to the task that writes the log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    lines: mpsc::Sender<String>,
    lost: Arc<AtomicU64>,
}

/// The task that writes the log.
pub(super) struct Writer {
    lines: mpsc::Receiver<String>,
    lost: Arc<AtomicU64>,
    output: Box<dyn Write + Send>,
}

impl Log {
    /// Opens the log. The path `-` is standard output.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Writer)> {
        let output: Box<dyn Write + Send> = match path.to_str() {
            Some("-") => Box::new(io::stdout()),
            _ => Box::new(open_file(path)?),
        };
        Ok(Self::to_output(output))
    }

    fn to_output(output: Box<dyn Write + Send>) -> (Self, Writer) {
        let (sender, lines) = mpsc::channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Self {
            lines: sender,
            lost: lost.clone(),
        };
        let writer = Writer {
            lines,
            lost,
            output,
        };
        (log, writer)
    }

    /// Puts a line into the queue. If the queue is full, the line is lost.
    pub(super) fn write(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Writes lines until the server stops.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let is_stopped = stop.is_cancelled();
            let received = tokio::select! {
                received = self.lines.recv_many(&mut batch, BATCH) => received,
                () = stop.cancelled(), if !is_stopped => continue,
                () = tokio::time::sleep(DRAIN), if is_stopped => 0,
            };
            if received == 0 {
                return;
            }
            let text = batch.concat();
            batch.clear();
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                tracing::warn!(events = lost, "audit events are lost: the queue is full");
            }
            let mut output = self.output;
            let written = tokio::task::spawn_blocking(move || {
                let result = output
                    .write_all(text.as_bytes())
                    .and_then(|()| output.flush());
                (output, result)
            });
            match written.await {
                Ok((output, result)) => {
                    self.output = output;
                    if let Err(error) = result {
                        tracing::warn!(%error, "cannot write the audit log");
                    }
                }
                // The runtime is stopping.
                Err(_) => return,
            }
        }
    }
}

/// Opens a file to append to. A new file can be read by its owner only, because the events may
/// contain Secrets.
fn open_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests;
