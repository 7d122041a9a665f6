//! Lines that show the steps of a deployment. On a terminal, the line of a rollout is replaced
//! until the rollout is complete, and waits show their time.

mod lines;

use std::io::{IsTerminal, Write};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opkit_deploy::{Change, Progress};
use tokio::time::Instant;

use self::lines::Lines;
use crate::output;

/// Interval at which the time of a wait is shown.
const TICK: Duration = Duration::from_secs(1);

/// Writer of the lines.
#[derive(Debug)]
pub(crate) struct Printer {
    /// Whether standard output is for the result, so that the lines go to standard error.
    to_stderr: bool,
    /// The lines on a terminal; `None` if no line can be replaced.
    lines: Option<Mutex<Lines>>,
}

impl Printer {
    /// Creates a printer. With `is_for_script`, the lines go to standard error.
    pub(crate) fn new(is_for_script: bool) -> Self {
        let is_terminal = match is_for_script {
            true => std::io::stderr().is_terminal(),
            false => std::io::stdout().is_terminal(),
        };
        Self {
            to_stderr: is_for_script,
            lines: is_terminal.then(|| Mutex::new(Lines::new(Instant::now()))),
        }
    }

    /// Prints a line with a label.
    pub(crate) fn line(&self, what: &str, text: &str) {
        self.print(&labelled(what, text), true);
    }

    /// Prints the last line of a command.
    pub(crate) fn end(&self, text: &str) {
        self.print(text, true);
    }

    /// Prints a step.
    pub(crate) fn show(&self, progress: &Progress) {
        if let Some((what, text, is_last)) = describe(progress) {
            self.print(&labelled(&what, &text), is_last);
        }
    }

    /// Waits for a command that reports its steps. On a terminal, shows each second for how long
    /// the present step takes.
    ///
    /// # Cancel safety
    /// That of `work`. The line of the last step is not ended.
    pub(crate) async fn wait_for<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut work = pin!(work);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    if done.is_err() {
                        self.on_terminal(Lines::end);
                    }
                    return done;
                }
                _ = tick.tick(), if self.lines.is_some() => {
                    self.on_terminal(|lines| lines.tick(Instant::now()));
                }
            }
        }
    }

    fn print(&self, line: &str, is_last: bool) {
        match self.lines {
            Some(_) => self.on_terminal(|lines| lines.print(line, is_last, Instant::now())),
            None => self.write(&format!("{line}\n")),
        }
    }

    fn on_terminal(&self, change: impl FnOnce(&mut Lines) -> String) {
        if let Some(lines) = &self.lines {
            let text = change(&mut lines.lock().unwrap_or_else(PoisonError::into_inner));
            self.write(&text);
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
