//! Lines on a terminal, the last of which may be replaced.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which a step that takes long shows its time.
const LONG: Duration = Duration::from_secs(1);
/// Moves to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// State of the last line. The methods return what to write to the terminal.
#[derive(Debug)]
pub(super) struct Lines {
    /// Time of the last step.
    changed: Instant,
    /// Step that is not complete, and whose line is replaced by the next one.
    step: Option<String>,
    /// Whether the cursor is at the end of a line that is replaced.
    is_open: bool,
}

impl Lines {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            changed: now,
            step: None,
            is_open: false,
        }
    }

    /// Prints a step. One that is not complete is replaced by the next one.
    pub(super) fn print(&mut self, line: &str, is_last: bool, now: Instant) -> String {
        let clear = if self.is_open { CLEAR } else { "" };
        self.changed = now;
        self.is_open = !is_last;
        self.step = (!is_last).then(|| line.to_owned());
        let end = if is_last { "\n" } else { "" };
        format!("{clear}{line}{end}")
    }

    /// Shows for how long the present step takes, if that is long.
    pub(super) fn tick(&mut self, now: Instant) -> String {
        let waited = now.saturating_duration_since(self.changed);
        if waited < LONG {
            return String::new();
        }
        let clear = if self.is_open { CLEAR } else { "" };
        self.is_open = true;
        let seconds = waited.as_secs();
        match &self.step {
            Some(step) => format!("{clear}{step}, waiting for {seconds} s"),
            None => format!(
                "{clear}{}",
                super::labelled("waiting", &format!("{seconds} s"))
            ),
        }
    }

    /// Ends the last line before an error is printed.
    pub(super) fn end(&mut self) -> String {
        let is_open = std::mem::take(&mut self.is_open);
        match (self.step.take(), is_open) {
            (Some(step), true) => format!("{CLEAR}{step}\n"),
            (None, true) => CLEAR.to_owned(),
            (_, false) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
