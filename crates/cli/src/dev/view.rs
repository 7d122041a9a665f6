//! Output of `opkit dev`: on a terminal a view that fills it, elsewhere one line per change.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_dashboard::{Dashboard, Request, Snapshot, Tab, draw};

use super::rows::{LastReconcile, Row};
use super::terminal::{Terminal, TerminalEvent};
use crate::control_plane::ControlPlane;
use crate::output;

#[cfg(test)]
mod tests;

/// Number of messages that the view keeps.
const MESSAGES_MAX: usize = 500;

/// View of the operator and its objects.
#[derive(Debug)]
pub(crate) struct View {
    /// Whether the process has a terminal.
    live: bool,
    ready_in: Duration,
    /// The terminal; `None` until the view is opened, and without a terminal.
    terminal: Option<Terminal>,
    dashboard: Dashboard,
    /// What the view shows. Its state and messages are set by [`View::line`].
    snapshot: Snapshot,
    messages: VecDeque<String>,
    /// Last printed line of each object.
    printed: HashMap<String, String>,
}

impl View {
    pub(crate) fn new(operator: &str) -> Self {
        let mut snapshot = Snapshot::default();
        snapshot.operator = operator.to_owned();
        Self {
            live: Terminal::is_present(),
            ready_in: Duration::ZERO,
            terminal: None,
            dashboard: Dashboard::new(),
            snapshot,
            messages: VecDeque::new(),
            printed: HashMap::new(),
        }
    }

    /// Prints lines, also on a terminal.
    pub(crate) fn lines_only(&mut self) {
        self.live = false;
    }

    /// Reports whether the view fills a terminal once the operator runs.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Sets the time that the control plane took to start.
    pub(crate) fn ready_in(&mut self, elapsed: Duration) {
        self.ready_in = elapsed;
    }

    /// Prints the control plane's address, the kubeconfig and the operator's kinds.
    pub(crate) fn banner(&mut self, plane: &ControlPlane, crds: &[CustomResourceDefinition]) {
        let file = &plane.kubeconfig;
        let kubeconfig = file.path().display();
        let line = format!(
            "ready in {} ms    kubeconfig {kubeconfig}   ({})",
            self.ready_in.as_millis(),
            file.export_line()
        );
        self.line("control plane", &line);
        self.crds(crds);
        self.on(&plane.address().to_string(), &file.export_line());
    }

    /// Sets the API server and the way to it, which the top of the view shows.
    pub(crate) fn on(&mut self, server: &str, way: &str) {
        self.snapshot.server = server.to_owned();
        self.snapshot.kubeconfig = way.to_owned();
    }

    /// Prints the kinds that the operator defines.
    pub(crate) fn crds(&mut self, crds: &[CustomResourceDefinition]) {
        for crd in crds {
            let versions: Vec<_> = crd
                .spec
                .versions
                .iter()
                .filter(|v| v.served)
                .map(|v| v.name.as_str())
                .collect();
            let name = crd.metadata.name.as_deref().unwrap_or_default();
            self.line(
                "crds",
                &format!("{name}/{} established", versions.join(",")),
            );
        }
    }

    /// Fills the terminal from now on, if there is one.
    pub(crate) fn open(&mut self) -> Result<()> {
        if self.live {
            self.terminal = Some(Terminal::open()?);
        }
        Ok(())
    }

    /// Leaves the terminal as it was before.
    pub(crate) fn close(&mut self) {
        self.terminal = None;
    }

    /// Reports a change of the operator: prints it, and shows it at the top of the view.
    pub(crate) fn state(&mut self, text: &str) {
        self.line("operator", text);
        self.set_state(text, false);
    }

    /// Reports that the operator is being built.
    pub(crate) fn building(&mut self, reason: &str) {
        self.line("build", reason);
        self.set_state(&format!("building: {reason}"), false);
    }

    /// Reports something that needs an edit, such as a failed build.
    pub(crate) fn problem(&mut self, what: &str, text: &str) {
        self.line(what, text);
        self.set_state(text, true);
    }

    fn set_state(&mut self, text: &str, has_problem: bool) {
        // The name is beside the state.
        let name = format!("{} ", self.snapshot.operator);
        self.snapshot.state = text.strip_prefix(&name).unwrap_or(text).to_owned();
        self.snapshot.has_problem = has_problem;
    }

    /// Prints a line with a label, or adds it to the messages of the view.
    pub(crate) fn line(&mut self, what: &str, text: &str) {
        if self.terminal.is_none() {
            output::line(what, text);
        }
        self.keep(format!("{what:<14} {text}"));
    }

    /// Prints text of another program unchanged, or shows it in the view.
    #[expect(clippy::print_stderr, reason = "cargo's output goes to stderr too")]
    pub(crate) fn text(&mut self, text: &str) {
        if self.terminal.is_none() {
            eprint!("{text}");
        }
        self.keep(text.trim_end().to_owned());
        self.dashboard.show(Tab::Build);
    }

    fn keep(&mut self, message: String) {
        self.messages.push_back(message);
        if self.messages.len() > MESSAGES_MAX {
            self.messages.pop_front();
        }
    }

    /// Reports whether the view fills the terminal.
    pub(crate) fn is_open(&self) -> bool {
        self.terminal.is_some()
    }

    /// Returns what the view shows, to be updated. `None` without a terminal.
    pub(crate) fn snapshot(&mut self) -> Option<&mut Snapshot> {
        self.terminal.is_some().then_some(&mut self.snapshot)
    }

    /// Draws the view.
    pub(crate) fn draw(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            self.snapshot.messages = self.messages.iter().cloned().collect();
            let (columns, lines) = terminal.size();
            terminal.draw(draw(&self.dashboard, &self.snapshot, columns, lines));
        }
    }

    /// Waits until the user asks for something. Never returns without a terminal.
    ///
    /// # Cancel safety
    /// May be dropped at any time: no key is lost.
    pub(crate) async fn requested(&mut self) -> Request {
        loop {
            let Some(terminal) = &mut self.terminal else {
                return std::future::pending().await;
            };
            if let TerminalEvent::Keys(keys) = terminal.event().await {
                for key in keys {
                    if let Some(request) = self.dashboard.press(key, &self.snapshot) {
                        return request;
                    }
                }
            }
            self.draw();
        }
    }

    /// Prints a line for each object that has changed.
    pub(crate) fn print(&mut self, rows: &[Row]) {
        let mut printed = HashMap::new();
        for row in rows {
            let (key, text) = (row.object(), change(row));
            if self.printed.get(&key) != Some(&text) {
                output::line("object", &text);
            }
            printed.insert(key, text);
        }
        for deleted in self
            .printed
            .keys()
            .filter(|key| !printed.contains_key(*key))
        {
            output::line("object", &format!("{deleted} was deleted"));
        }
        self.printed = printed;
    }
}

/// Returns the line of an object. The line does not contain the age, which changes all the time.
fn change(row: &Row) -> String {
    let because = row
        .last
        .as_ref()
        .map(|last| format!("   reconciled in {}", describe(last)));
    let because = because.unwrap_or_default();
    let change = format!("{}  {}  {}{because}", row.object(), row.ready, row.status);
    output::plain(&change)
}

/// Returns the duration, error and cause of a reconcile.
fn describe(last: &LastReconcile) -> String {
    let error = last
        .error
        .as_ref()
        .map(|error| format!(", error: {error}"))
        .unwrap_or_default();
    let duration = opkit_dashboard::human(last.duration);
    format!("{duration}{error}, because {}", last.cause)
}
