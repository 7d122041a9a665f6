//! Lines that show the steps of a deployment. On a terminal, the line of a rollout is replaced
//! until the rollout is complete.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opkit_deploy::{Change, Progress};

use crate::output;

/// Writer of the lines.
#[derive(Debug)]
pub(crate) struct Printer {
    /// Whether standard output is for the result, so that the lines go to standard error.
    to_stderr: bool,
    is_terminal: bool,
    /// Whether the last line is to be replaced.
    is_open: AtomicBool,
}

impl Printer {
    /// Creates a printer. With `is_for_script`, the lines go to standard error.
    pub(crate) fn new(is_for_script: bool) -> Self {
        Self {
            to_stderr: is_for_script,
            is_terminal: match is_for_script {
                true => std::io::stderr().is_terminal(),
                false => std::io::stdout().is_terminal(),
            },
            is_open: AtomicBool::new(false),
        }
    }

    /// Prints a line with a label.
    pub(crate) fn line(&self, what: &str, text: &str) {
        self.write(&format!("{}\n", labelled(what, text)));
    }

    /// Prints the last line of a command.
    pub(crate) fn end(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    /// Prints a step.
    pub(crate) fn show(&self, progress: &Progress) {
        let Some((what, text, is_last)) = describe(progress) else {
            return;
        };
        let line = labelled(&what, &text);
        let is_open = self.is_terminal && !is_last;
        self.is_open.store(is_open, Ordering::Relaxed);
        match (self.is_terminal, is_last) {
            (true, true) => self.write(&format!("\r\x1b[K{line}\n")),
            (true, false) => self.write(&format!("\r\x1b[K{line}")),
            (false, _) => self.write(&format!("{line}\n")),
        }
    }

    /// Ends a line that would be replaced, before an error is printed.
    pub(crate) fn break_line(&self) {
        if self.is_open.swap(false, Ordering::Relaxed) {
            self.write("\n");
        }
    }

    fn write(&self, text: &str) {
        match self.to_stderr {
            // A closed standard error ends nothing.
            true => drop(std::io::stderr().lock().write_all(text.as_bytes())),
            false => output::write(text),
        }
    }
}

fn labelled(what: &str, text: &str) -> String {
    format!("   {what:<14} {text}")
}

/// Returns the label and the text of a step, and whether the line is final. Objects that are as
/// they should be are not shown.
fn describe(progress: &Progress) -> Option<(String, String, bool)> {
    let (what, text, is_last) = match progress {
        Progress::Applied {
            change: Change::Unchanged,
            ..
        } => return None,
        Progress::Applied { object, change } => {
            let text = format!("{}   {}", object.name, word(*change));
            (label(&object.kind), text, true)
        }
        Progress::Established {
            name,
            change,
            versions,
            elapsed,
        } => {
            let (versions, elapsed) = (versions.join(", "), seconds(*elapsed));
            let text = format!(
                "{name}   {versions}   {}, established   {elapsed}",
                word(*change)
            );
            ("crd".to_owned(), text, true)
        }
        Progress::Rollout {
            deployment,
            state,
            elapsed,
        } => {
            let text = format!("{}   {state}   {}", deployment.name, seconds(*elapsed));
            ("rollout".to_owned(), text, state.is_complete())
        }
        Progress::Deleted { object } => ("deleted".to_owned(), object.to_string(), true),
        Progress::Kept { name, instances } => {
            let objects = match instances {
                Some(1) => "1 object exists".to_owned(),
                Some(number) => format!("{number} objects exist"),
                None => "its objects cannot be listed".to_owned(),
            };
            let text = format!("crd {name}, because {objects}");
            ("kept".to_owned(), text, true)
        }
        _ => return None,
    };
    Some((what, output::plain(&text), is_last))
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Created => "created",
        Change::Changed => "changed",
        _ => "unchanged",
    }
}

fn label(kind: &str) -> String {
    match kind {
        "ServiceAccount" | "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => {
            "rbac".to_owned()
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => "webhooks".to_owned(),
        "PodDisruptionBudget" => "budget".to_owned(),
        kind => kind.to_lowercase(),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
