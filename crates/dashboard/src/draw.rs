//! The layout: which part of the view has which lines of the terminal.

use crate::model::Snapshot;
use crate::panels;
use crate::screen::{Line, Screen, Style};
use crate::state::Dashboard;

/// Smallest terminal that the view is drawn on.
const COLUMNS_MIN: usize = 40;
const LINES_MIN: usize = 12;
/// Lines that are always used: two at the top, two at the bottom, the heading of the table, and
/// three rules.
const FIXED: usize = 8;

/// Draws the view for a terminal of this size.
pub fn draw(dashboard: &Dashboard, snapshot: &Snapshot, columns: usize, lines: usize) -> Screen {
    if columns < COLUMNS_MIN || lines < LINES_MIN {
        let text = format!("the terminal is too small: {COLUMNS_MIN}x{LINES_MIN} are needed");
        return screen(vec![Line::of(text, Style::Plain)], columns, lines);
    }
    let objects = dashboard.objects(snapshot);
    let position = dashboard.position(&objects);
    let heights = Heights::of(lines, objects.len(), dashboard.is_explaining);

    let mut all = Vec::with_capacity(lines);
    all.extend(panels::head(snapshot, columns));
    all.push(panels::rule("", "", columns));
    let (heading, rows) = panels::objects(snapshot, &objects);
    all.push(indented(heading, "   "));
    let first = position.saturating_sub(heights.objects.saturating_sub(1));
    let shown = rows
        .into_iter()
        .enumerate()
        .skip(first)
        .take(heights.objects);
    let mut table: Vec<Line> = shown
        .map(|(index, row)| match index == position {
            true => selected(row),
            false => indented(row, "   "),
        })
        .collect();
    if table.is_empty() {
        let hint = match dashboard.filter.is_empty() {
            true => "   no objects yet: apply one with kubectl",
            false => "   no object matches the filter",
        };
        table.push(Line::of(hint, Style::Dim));
    }
    table.resize(heights.objects, Line::default());
    all.extend(table);

    let (title, number, reconciles) = match objects.get(position) {
        Some(object) => {
            let (number, lines) = panels::reconciles(snapshot, object);
            (format!("reconciles of {}", object.title()), number, lines)
        }
        None => ("reconciles".to_owned(), 0, Vec::new()),
    };
    let note = match number {
        0 => String::new(),
        1 => "the last one".to_owned(),
        number => format!("the last {number}"),
    };
    all.push(panels::rule(&title, &note, columns));
    let scroll = if dashboard.is_explaining {
        dashboard.scroll
    } else {
        0
    };
    all.extend(window(reconciles, heights.reconciles, scroll, false));

    if !dashboard.is_explaining {
        let (lines, is_newest_last) = panels::tab(dashboard, snapshot);
        all.push(panels::rule(&panels::tabs(dashboard.tab), "", columns));
        all.extend(window(lines, heights.tab, dashboard.scroll, is_newest_last));
    }
    all.push(panels::rule("", "", columns));
    all.push(panels::foot(dashboard));
    screen(all, columns, lines)
}

/// Numbers of lines of the parts that share the rest of the terminal.
#[derive(Debug, PartialEq, Eq)]
struct Heights {
    objects: usize,
    reconciles: usize,
    tab: usize,
}

impl Heights {
    fn of(lines: usize, objects: usize, is_explaining: bool) -> Self {
        let free = lines.saturating_sub(FIXED);
        let objects = objects.clamp(1, (free.saturating_mul(2) / 5).max(1));
        let rest = free.saturating_sub(objects);
        match is_explaining {
            // The rule of the tab is a line of reconciles too.
            true => Self {
                objects,
                reconciles: rest.saturating_add(1),
                tab: 0,
            },
            false => Self {
                objects,
                reconciles: rest / 2,
                tab: rest.saturating_sub(rest / 2),
            },
        }
    }
}

/// Returns `height` lines of a list. A list whose newest line is the last one is shown from its
/// end.
fn window(lines: Vec<Line>, height: usize, scroll: usize, is_newest_last: bool) -> Vec<Line> {
    let hidden = lines.len().saturating_sub(height);
    let scroll = scroll.min(hidden);
    let skipped = match is_newest_last {
        true => hidden.saturating_sub(scroll),
        false => scroll,
    };
    let mut shown: Vec<Line> = lines.into_iter().skip(skipped).take(height).collect();
    shown.resize(height, Line::default());
    shown
}

fn indented(line: Line, indent: &str) -> Line {
    let mut spans = Line::of(indent, Style::Plain).spans;
    spans.extend(line.spans);
    Line { spans }
}

/// Returns the row of the selected object: marked with `>` and in another style, so that it can be
/// recognized without colours too.
fn selected(row: Line) -> Line {
    let text: String = row.spans.into_iter().map(|span| span.text).collect();
    Line::of(format!(" > {text}"), Style::Selected)
}

fn screen(mut all: Vec<Line>, columns: usize, lines: usize) -> Screen {
    all.resize(lines, Line::default());
    Screen {
        lines: all.into_iter().map(|line| line.fit(columns)).collect(),
    }
}

#[cfg(test)]
mod tests;
