//! The content of the parts of the view, as lines without a fixed width.

use opkit_debug::{Outcome, Reconcile, Write};

use crate::model::{ObjectRow, Snapshot, between};
use crate::screen::{Line, Style};
use crate::state::{Dashboard, Tab};
use crate::text::{fit, human, plain, seconds, width, without_escapes};

/// Returns the heading of the table of objects, and a row for each object.
pub(crate) fn objects(snapshot: &Snapshot, objects: &[&ObjectRow]) -> (Line, Vec<Line>) {
    const HEADINGS: [&str; 5] = ["NAMESPACE", "KIND", "NAME", "READY", "STATUS"];
    let cells: Vec<[String; 5]> = objects
        .iter()
        .map(|object| {
            let namespace = object.namespace.clone().unwrap_or_default();
            [
                &namespace,
                &object.kind,
                &object.name,
                &object.ready,
                &object.status,
            ]
            .map(|cell| plain(cell))
        })
        .collect();
    // The namespaces are left out while there is only one.
    let mut namespaces = cells.iter().map(|[namespace, ..]| namespace);
    let first = namespaces.next();
    let skipped = usize::from(namespaces.all(|namespace| Some(namespace) == first));
    let mut widths = HEADINGS.map(width);
    for row in &cells {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(width(cell));
        }
    }
    let padded = |row: &[String]| -> String {
        let columns = row.iter().zip(widths).skip(skipped);
        columns
            .map(|(cell, width)| fit(cell, width) + "  ")
            .collect()
    };
    let heading = padded(&HEADINGS.map(str::to_owned)) + "LAST RECONCILE";
    let rows = objects.iter().zip(&cells).map(|(object, row)| {
        let mut own = snapshot.reconciles.iter().filter(|it| object.is_of(it));
        let line = Line::of(padded(row), Style::Plain);
        match own.next_back() {
            Some(last) => {
                let (result, style) = result(last);
                let times = format!("{}  {}  ", age(snapshot, last), duration(last));
                line.then(times, Style::Plain).then(result, style)
            }
            None => line.then("-", Style::Dim),
        }
    });
    (Line::of(heading, Style::Dim), rows.collect())
}

/// Returns the reconciles of an object, newest first, each in two or more lines.
pub(crate) fn reconciles(snapshot: &Snapshot, object: &ObjectRow) -> (usize, Vec<Line>) {
    let own = snapshot
        .reconciles
        .iter()
        .rev()
        .filter(|it| object.is_of(it));
    let (mut number, mut lines) = (0, Vec::new());
    for reconcile in own {
        number += 1;
        let start = format!(
            "   {}  {}  {}  ",
            fit(&format!("#{}", reconcile.number), 4),
            fit(&age(snapshot, reconcile), 10),
            fit(&duration(reconcile), 7),
        );
        let indent = " ".repeat(width(&start));
        let mut start = Line::of(start, Style::Dim);
        for cause in &reconcile.causes {
            lines.push(start.then(plain(cause), Style::Plain));
            start = Line::of(indent.clone(), Style::Plain);
        }
        let (result, style) = result(reconcile);
        let line = start.then(format!("{}, ", work(reconcile)), Style::Dim);
        lines.push(line.then(result, style));
        if let Outcome::Error { message, .. } = &reconcile.result {
            let line = Line::of(indent.clone(), Style::Plain);
            lines.push(line.then(plain(message), Style::Error));
        }
        if let Some(hot) = &reconcile.hot_loop {
            let text = format!("loop: {} reconciles because of {}", hot.count, hot.object);
            let line = Line::of(indent, Style::Plain);
            lines.push(line.then(plain(&text), Style::Warning));
        }
    }
    (number, lines)
}

fn age(snapshot: &Snapshot, reconcile: &Reconcile) -> String {
    let since = between(reconcile.started, snapshot.now);
    let took = seconds(reconcile.duration_seconds);
    format!("{} ago", human(since.saturating_sub(took)))
}

fn duration(reconcile: &Reconcile) -> String {
    human(seconds(reconcile.duration_seconds))
}

/// Returns the result of a reconcile in a few words.
fn result(reconcile: &Reconcile) -> (String, Style) {
    match &reconcile.result {
        Outcome::Ok => ("ok".to_owned(), Style::Good),
        Outcome::Requeue { after_seconds } => {
            let after = human(seconds(*after_seconds));
            (format!("ok, again in {after}"), Style::Good)
        }
        Outcome::Error { retry_seconds, .. } => {
            let text = match retry_seconds {
                Some(retry) => format!("error, retry in {}", human(seconds(*retry))),
                None => "error".to_owned(),
            };
            (text, Style::Error)
        }
    }
}

/// Returns what a reconcile read and wrote.
fn work(reconcile: &Reconcile) -> String {
    let reads = reconcile.cache_reads.saturating_add(reconcile.live_reads);
    let reads = match reads {
        1 => "1 read".to_owned(),
        reads => format!("{reads} reads"),
    };
    let write = |write: &Write| match write.subresource.as_str() {
        "" => format!("{} {}/{}", write.verb, write.kind, write.name),
        subresource if write.name == reconcile.name && write.kind == reconcile.kind => {
            subresource.to_owned()
        }
        subresource => format!("{subresource} of {}/{}", write.kind, write.name),
    };
    let writes: Vec<_> = reconcile.writes.iter().map(write).collect();
    match writes.is_empty() {
        true => format!("{reads}, wrote nothing"),
        false => plain(&format!("{reads}, wrote {}", writes.join(", "))),
    }
}

/// Returns the lines of a tab, and whether the newest line is the last one.
pub(crate) fn tab(dashboard: &Dashboard, snapshot: &Snapshot) -> (Vec<Line>, bool) {
    let lines = match dashboard.tab {
        Tab::Log => log(snapshot),
        Tab::Queue => queue(snapshot),
        Tab::Events => events(snapshot),
        Tab::Webhooks => webhooks(snapshot),
        Tab::Build => messages(snapshot),
    };
    let lines = lines
        .into_iter()
        .filter(|line| dashboard.passes(&line.text()));
    let is_newest_last = matches!(dashboard.tab, Tab::Log | Tab::Build);
    (lines.collect(), is_newest_last)
}

fn log(snapshot: &Snapshot) -> Vec<Line> {
    let lines = snapshot.log.iter().map(|line| {
        let style = match line.level.as_str() {
            "WARN" => Style::Warning,
            "ERROR" => Style::Error,
            _ => Style::Plain,
        };
        let text = plain(&without_escapes(&line.text));
        match line.time.is_empty() {
            true => Line::of(format!(" {text}"), style),
            false => Line::of(format!(" {} ", line.time), Style::Dim)
                .then(fit(&line.level, 6), style)
                .then(text, Style::Plain),
        }
    });
    lines.collect()
}

fn queue(snapshot: &Snapshot) -> Vec<Line> {
    let requests = snapshot.queue.iter().map(|request| {
        let object = match &request.namespace {
            Some(namespace) => format!("{namespace}/{}", request.name),
            None => request.name.clone(),
        };
        let (state, style) = match request.due_seconds {
            _ if request.in_work => {
                let age = human(seconds(request.age_seconds));
                (format!("in work for {age}"), Style::Good)
            }
            Some(due) => (format!("due in {}", human(seconds(due))), Style::Dim),
            None => {
                let age = human(seconds(request.age_seconds));
                (format!("ready for {age}"), Style::Plain)
            }
        };
        let failures = match request.failures {
            0 => String::new(),
            1 => "1 failure".to_owned(),
            failures => format!("{failures} failures"),
        };
        let names = format!(
            " {}  {}  ",
            fit(&request.controller, 16),
            fit(&plain(&object), 32)
        );
        Line::of(names, Style::Plain)
            .then(fit(&state, 18), style)
            .then(failures, Style::Error)
    });
    or_hint(requests.collect(), "the queues are empty")
}

fn events(snapshot: &Snapshot) -> Vec<Line> {
    let events = snapshot.events.iter().map(|event| {
        let style = match event.is_warning {
            true => Style::Warning,
            false => Style::Plain,
        };
        let age = format!("{} ago", human(between(event.time, snapshot.now)));
        let count = match event.count {
            0 | 1 => String::new(),
            count => format!("  ({count} times)"),
        };
        Line::of(format!(" {}  ", fit(&age, 10)), Style::Dim)
            .then(plain(&event.reason), style)
            .then(format!("  {}  ", plain(&event.object)), Style::Plain)
            .then(plain(&event.message) + &count, Style::Dim)
    });
    or_hint(events.collect(), "there are no events")
}

fn webhooks(snapshot: &Snapshot) -> Vec<Line> {
    let webhooks = snapshot.webhooks.iter().map(|webhook| {
        let calls = match webhook.requests {
            1 => "1 request".to_owned(),
            requests => format!("{requests} requests"),
        };
        let mean = match webhook.requests {
            0 => String::new(),
            _ => format!("{} each", human(seconds(webhook.mean_seconds))),
        };
        let in_flight = match webhook.in_flight {
            0 => String::new(),
            number => format!("  {number} in progress"),
        };
        Line::of(format!(" {}  ", fit(&webhook.path, 44)), Style::Plain)
            .then(format!("{}  ", fit(&calls, 14)), Style::Plain)
            .then(mean + &in_flight, Style::Dim)
    });
    or_hint(webhooks.collect(), "the operator has no webhooks")
}

fn messages(snapshot: &Snapshot) -> Vec<Line> {
    let lines = snapshot.messages.iter().flat_map(|message| message.lines());
    let lines = lines.map(|line| {
        let text = plain(&without_escapes(line));
        let style = match text.trim_start() {
            text if text.starts_with("error") => Style::Error,
            text if text.starts_with("warning") => Style::Warning,
            _ => Style::Plain,
        };
        Line::of(format!(" {text}"), style)
    });
    lines.collect()
}

/// Returns the lines, or a hint if there are none.
fn or_hint(lines: Vec<Line>, hint: &str) -> Vec<Line> {
    match lines.is_empty() {
        true => vec![Line::of(format!(" {hint}"), Style::Dim)],
        false => lines,
    }
}

/// Returns the two lines at the top.
pub(crate) fn head(snapshot: &Snapshot, columns: usize) -> [Line; 2] {
    let style = match snapshot.has_problem {
        true => Style::Error,
        false => Style::Good,
    };
    let name = Line::of(format!(" {}   ", plain(&snapshot.operator)), Style::Bold);
    let first = name.then(plain(&snapshot.state), style);
    let count = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    };
    let mut counts = vec![count(snapshot.controllers.len(), "controller")];
    if !snapshot.webhooks.is_empty() {
        counts.push(count(snapshot.webhooks.len(), "webhook"));
    }
    let waiting = snapshot.queue.iter().filter(|it| it.due_seconds.is_none());
    counts.push(format!("queue {}", waiting.count()));
    let second = Line::of(format!(" {}", snapshot.kubeconfig), Style::Dim);
    [
        apart(first, Line::of(&snapshot.server, Style::Dim), columns),
        apart(second, Line::of(counts.join("  "), Style::Plain), columns),
    ]
}

/// Returns a line with one text at the left and one at the right. The right one is left out if the
/// line is too short for both.
fn apart(left: Line, right: Line, columns: usize) -> Line {
    let used = left.width().saturating_add(right.width());
    let Some(free) = columns
        .checked_sub(used.saturating_add(1))
        .filter(|free| *free > 1)
    else {
        return left;
    };
    let mut line = left.then(" ".repeat(free), Style::Plain);
    line.spans.extend(right.spans);
    line
}

/// Returns the line at the bottom.
pub(crate) fn foot(dashboard: &Dashboard) -> Line {
    if dashboard.is_filtering {
        let text = format!(
            " filter: {}_   enter keeps it, esc removes it",
            dashboard.filter
        );
        return Line::of(plain(&text), Style::Bold);
    }
    let filter = match dashboard.filter.is_empty() {
        true => "/ filter".to_owned(),
        false => format!("/ filter {:?}", dashboard.filter),
    };
    let explain = match dashboard.is_explaining {
        true => "esc back",
        false => "enter explain",
    };
    let text = format!(" arrows select  {explain}  tab next list  {filter}  b build  q quit");
    Line::of(plain(&text), Style::Dim)
}

/// Returns a rule with a title, and a note at its right end.
pub(crate) fn rule(title: &str, note: &str, columns: usize) -> Line {
    let title = match title.is_empty() {
        true => String::new(),
        false => format!("── {} ", plain(title)),
    };
    let note = match note.is_empty() {
        true => String::new(),
        false => format!(" {note} ──"),
    };
    let free = columns.saturating_sub(width(&title).saturating_add(width(&note)));
    Line::of(title + &"─".repeat(free) + &note, Style::Dim)
}

/// Returns the names of the tabs, with the selected one in brackets.
pub(crate) fn tabs(selected: Tab) -> String {
    let names = Tab::ALL.iter().map(|tab| match *tab == selected {
        true => format!("[{}]", tab.name()),
        false => tab.name().to_owned(),
    });
    names.collect::<Vec<_>>().join(" ")
}
