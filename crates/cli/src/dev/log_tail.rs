//! The last lines of the operator's log file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use opkit_dashboard::LogLine;

/// Number of lines that are kept.
const LINES_MAX: usize = 1_000;
/// Number of bytes that are read at once; what the operator wrote before them is left out.
const BYTES_MAX: u64 = 256 * 1024;

/// The end of a file that grows.
#[derive(Debug, Default)]
pub(crate) struct LogTail {
    lines: VecDeque<LogLine>,
    /// Number of bytes that were read.
    position: u64,
    /// Bytes after the last line end.
    rest: Vec<u8>,
}

impl LogTail {
    /// Reads what was written since the last call. A file that is shorter than before is a new one,
    /// whose lines follow the old ones.
    pub(crate) fn read(&mut self, path: &Path) {
        let Ok(mut file) = File::open(path) else {
            return;
        };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if length < self.position {
            self.position = 0;
            self.rest.clear();
        }
        if length - self.position > BYTES_MAX {
            self.position = length - BYTES_MAX;
            self.rest.clear();
        }
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.position))
            .and_then(|_| file.take(BYTES_MAX).read_to_end(&mut bytes));
        let Ok(read) = read else {
            return;
        };
        self.position = self.position.saturating_add(read as u64);
        self.rest.extend_from_slice(&bytes);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let complete: Vec<u8> = self.rest.drain(..=end).collect();
        let text = String::from_utf8_lossy(&complete);
        self.lines.extend(text.lines().map(LogLine::parse));
        let passed = self.lines.len().saturating_sub(LINES_MAX);
        self.lines.drain(..passed);
    }

    /// Returns the lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.lines.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_are_read_once_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = LogTail::default();
        let texts = |tail: &LogTail| -> Vec<String> {
            tail.lines().into_iter().map(|line| line.text).collect()
        };
        tail.read(&path);
        assert_eq!(texts(&tail), [""; 0]);
        fs::write(&path, "one\ntw").unwrap();
        tail.read(&path);
        assert_eq!(texts(&tail), ["one"]);
        fs::write(&path, "one\ntwo\n").unwrap();
        tail.read(&path);
        assert_eq!(texts(&tail), ["one", "two"]);
        // A restarted operator has a new log.
        fs::write(&path, "new\n").unwrap();
        tail.read(&path);
        assert_eq!(texts(&tail), ["one", "two", "new"]);
    }

    #[test]
    fn a_long_log_is_read_from_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "x\n".repeat(300_000) + "last\n").unwrap();
        let mut tail = LogTail::default();
        tail.read(&path);
        let lines = tail.lines();
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines.last().unwrap().text, "last");
    }
}
