//! Output of `opkit dev`: on a terminal a table that is redrawn, elsewhere one line per change.

use std::collections::{HashMap, HashSet};
use std::io::{self, IsTerminal};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::rows::{LastReconcile, Row};
use crate::control_plane::ControlPlane;
use crate::output;

#[cfg(test)]
mod tests;

/// Line limit of the table; with the lines above it, the table fits a terminal of 24 lines.
const LINES_MAX: usize = 16;

/// View of the operator's objects.
#[derive(Debug)]
pub(crate) struct View {
    live: bool,
    ready_in: Duration,
    /// Number of lines of the table on the screen.
    drawn: usize,
    /// Last printed line of each object.
    printed: HashMap<String, String>,
}

impl View {
    pub(crate) fn new() -> Self {
        Self {
            live: io::stdout().is_terminal(),
            ready_in: Duration::ZERO,
            drawn: 0,
            printed: HashMap::new(),
        }
    }

    /// Reports whether the view redraws a table on a terminal.
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

    /// Prints a line with a label above the table.
    pub(crate) fn line(&mut self, what: &str, text: &str) {
        self.clear();
        output::line(what, text);
    }

    /// Prints text of another program unchanged, above the table.
    #[expect(clippy::print_stderr, reason = "cargo's output goes to stderr too")]
    pub(crate) fn text(&mut self, text: &str) {
        self.clear();
        eprint!("{text}");
    }

    /// Removes the table from the screen.
    fn clear(&mut self) {
        if self.drawn > 0 {
            output::write(&format!("\x1b[{}A\x1b[J", self.drawn));
            self.drawn = 0;
        }
    }

    /// Shows the current objects.
    pub(crate) fn show(&mut self, rows: &[Row]) {
        if self.live {
            let table = fit(&table(rows));
            self.clear();
            self.drawn = table.lines().count();
            // With wrapping off, each row stays one line on a narrow terminal.
            output::write(&format!("\x1b[?7l{table}\x1b[?7h"));
            return;
        }
        let mut printed = HashMap::new();
        for row in rows {
            let (key, text) = (row.object(), change(row));
            if self.printed.get(&key) != Some(&text) {
                self.line("object", &text);
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

/// Cuts a table to [`LINES_MAX`] lines, so that it can be redrawn in place.
fn fit(table: &str) -> String {
    let lines: Vec<&str> = table.lines().collect();
    let Some(rest) = lines.len().checked_sub(LINES_MAX).filter(|rest| *rest > 0) else {
        return table.to_owned();
    };
    let shown = lines.iter().take(LINES_MAX - 1);
    let mut text: String = shown.map(|line| format!("{line}\n")).collect();
    text.push_str(&format!("   ... and {} more\n", rest + 1));
    text
}

/// Returns the table for a terminal, with an empty line before it.
fn table(rows: &[Row]) -> String {
    let namespaces: HashSet<_> = rows.iter().map(|row| &row.namespace).collect();
    let mut cells = vec![
        [
            "NAMESPACE",
            "KIND",
            "NAME",
            "READY",
            "STATUS",
            "LAST RECONCILE",
        ]
        .map(str::to_owned),
    ];
    cells.extend(rows.iter().map(|row| {
        let last = row.last.as_ref().map_or_else(
            || "-".to_owned(),
            |last| format!("{} ago, {}", human(last.age), describe(last)),
        );
        let Row {
            kind,
            name,
            ready,
            status,
            ..
        } = row.clone();
        [
            row.namespace.clone().unwrap_or_default(),
            kind,
            name,
            ready,
            status,
            last,
        ]
        .map(|cell| output::plain(&cell))
    }));
    // The namespace column is omitted while there is only one namespace.
    let skipped = if namespaces.len() > 1 { 0 } else { 1 };
    let mut widths = [0; 6];
    for line in &cells {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::from("\n");
    for line in &cells {
        let padded: Vec<_> = line
            .iter()
            .zip(widths)
            .skip(skipped)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(&format!("   {}\n", padded.join("  ").trim_end()));
    }
    text
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
    format!("{}{error}, because {}", human(last.duration), last.cause)
}

/// Formats a duration in a readable unit.
pub(crate) fn human(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1_000.0;
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.0} s", ms / 1_000.0),
        ms => format!("{:.0} min", ms / 60_000.0),
    }
}
