//! What `opkit dev` shows: a table that keeps itself up to date on a terminal, a line for each
//! change elsewhere.

use std::{
    collections::{HashMap, HashSet},
    io::{self, IsTerminal},
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::rows::{LastReconcile, Row};
use crate::{control_plane::ControlPlane, output};

#[cfg(test)]
mod tests;

/// How many lines the table takes at most: with what is above it, 24 are a usual terminal.
const LINES_MAX: usize = 16;

/// The view.
#[derive(Debug)]
pub(crate) struct View {
    live: bool,
    ready_in: Duration,
    /// How many lines the table on the screen has.
    drawn: usize,
    /// What was last said of each object.
    said: HashMap<String, String>,
}

impl View {
    pub(crate) fn new() -> Self {
        Self {
            live: io::stdout().is_terminal(),
            ready_in: Duration::ZERO,
            drawn: 0,
            said: HashMap::new(),
        }
    }

    /// Whether the view has the terminal to itself.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// How long the control plane took to start.
    pub(crate) fn ready_in(&mut self, elapsed: Duration) {
        self.ready_in = elapsed;
    }

    /// What there is, and how to reach it.
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

    /// The kinds that the operator defines.
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

    /// Text of another program as it is, above the table.
    #[expect(clippy::print_stderr, reason = "where the compiler prints")]
    pub(crate) fn text(&mut self, text: &str) {
        self.clear();
        eprint!("{text}");
    }

    /// Takes the table off the screen.
    fn clear(&mut self) {
        if self.drawn > 0 {
            output::write(&format!("\x1b[{}A\x1b[J", self.drawn));
            self.drawn = 0;
        }
    }

    /// Shows the objects as they are now.
    pub(crate) fn show(&mut self, rows: &[Row]) {
        if self.live {
            let table = fit(&table(rows));
            self.clear();
            self.drawn = table.lines().count();
            // Without wrapping, a line stays one on a narrow terminal.
            output::write(&format!("\x1b[?7l{table}\x1b[?7h"));
            return;
        }
        let mut said = HashMap::new();
        for row in rows {
            let (key, text) = (row.object(), change(row));
            if self.said.get(&key) != Some(&text) {
                self.line("object", &text);
            }
            said.insert(key, text);
        }
        for gone in self.said.keys().filter(|key| !said.contains_key(*key)) {
            output::line("object", &format!("{gone} is gone"));
        }
        self.said = said;
    }
}

/// Cuts a table to what the smallest usual terminal can show, so that it can be drawn over.
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

/// The table on a terminal, with an empty line before it.
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
            |last| format!("{} ago, {}", human(last.age), account(last)),
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
    // The namespace says nothing while there is only one.
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

/// What a line says of an object: all but its age.
fn change(row: &Row) -> String {
    let because = row
        .last
        .as_ref()
        .map(|last| format!("   reconciled in {}", account(last)));
    let because = because.unwrap_or_default();
    let change = format!("{}  {}  {}{because}", row.object(), row.ready, row.status);
    output::plain(&change)
}

/// How long a reconcile took, how it went wrong, and why it was.
fn account(last: &LastReconcile) -> String {
    let error = last
        .error
        .as_ref()
        .map(|error| format!(", error: {error}"))
        .unwrap_or_default();
    format!("{}{error}, because {}", human(last.duration), last.cause)
}

/// A duration in the unit that suits it.
pub(crate) fn human(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1_000.0;
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.0} s", ms / 1_000.0),
        ms => format!("{:.0} min", ms / 60_000.0),
    }
}
