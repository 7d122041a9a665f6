//! Unified diffs of two texts.

use crate::tree::Change;

#[cfg(test)]
mod tests;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// Line of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Same(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// Compares two texts line by line. Lines contain their line ending.
pub(crate) fn lines<'a>(before: &'a str, after: &'a str) -> Vec<Line<'a>> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[&'a str]| lines.get(start..).unwrap_or_default().to_vec();
    let (mut old_rest, mut new_rest) = (rest(&old), rest(&new));
    let mut end = Vec::new();
    while let (Some(a), Some(b)) = (old_rest.last(), new_rest.last()) {
        if a != b {
            break;
        }
        end.push(Line::Same(a));
        old_rest.pop();
        new_rest.pop();
    }
    let mut found: Vec<Line<'a>> = old.iter().take(start).map(|it| Line::Same(it)).collect();
    found.extend(compare(&old_rest, &new_rest));
    found.extend(end.into_iter().rev());
    found
}

/// Compares lines by their longest common subsequence. The texts of a project are short, and the
/// lines around the changes are not compared.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let length =
        |lengths: &[u32], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let best = match a == b {
                true => length(&lengths, i + 1, j + 1) + 1,
                false => length(&lengths, i + 1, j).max(length(&lengths, i, j + 1)),
            };
            if let Some(place) = lengths.get_mut(i * width + j) {
                *place = best;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::new();
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                found.push(Line::Same(a));
                i += 1;
                j += 1;
            }
            (Some(a), Some(_)) if length(&lengths, i + 1, j) >= length(&lengths, i, j + 1) => {
                found.push(Line::Removed(a));
                i += 1;
            }
            (Some(a), None) => {
                found.push(Line::Removed(a));
                i += 1;
            }
            (_, Some(b)) => {
                found.push(Line::Added(b));
                j += 1;
            }
            (None, None) => return found,
        }
    }
}

/// Returns the change of a file as a unified diff.
pub(crate) fn unified(change: &Change) -> String {
    let name = |text: &Option<String>, side: &str| match text {
        Some(_) => format!("{side}/{}", change.path),
        None => "/dev/null".to_owned(),
    };
    let mut text = format!(
        "--- {}\n+++ {}\n",
        name(&change.before, "a"),
        name(&change.after, "b")
    );
    let before = change.before.as_deref().unwrap_or_default();
    let after = change.after.as_deref().unwrap_or_default();
    let lines = lines(before, after);
    let changed: Vec<usize> = (lines.iter().enumerate())
        .filter(|(_, line)| !matches!(line, Line::Same(_)))
        .map(|(index, _)| index)
        .collect();
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for index in changed {
        let start = index.saturating_sub(CONTEXT);
        let end = (index + CONTEXT + 1).min(lines.len());
        match hunks.last_mut() {
            Some(last) if start <= last.1 => last.1 = end,
            _ => hunks.push((start, end)),
        }
    }
    for (start, end) in hunks {
        text += &hunk(&lines, start, end);
    }
    text
}

fn hunk(lines: &[Line<'_>], start: usize, end: usize) -> String {
    let is_old = |line: &&Line<'_>| !matches!(line, Line::Added(_));
    let is_new = |line: &&Line<'_>| !matches!(line, Line::Removed(_));
    let before = lines.get(..start).unwrap_or_default();
    let shown = lines.get(start..end).unwrap_or_default();
    let range = |skipped: usize, count: usize| match count {
        // The line before an empty range.
        0 => format!("{skipped},0"),
        1 => format!("{}", skipped + 1),
        _ => format!("{},{count}", skipped + 1),
    };
    let mut text = format!(
        "@@ -{} +{} @@\n",
        range(
            before.iter().filter(is_old).count(),
            shown.iter().filter(is_old).count()
        ),
        range(
            before.iter().filter(is_new).count(),
            shown.iter().filter(is_new).count()
        ),
    );
    for line in shown {
        let (sign, line) = match line {
            Line::Same(line) => (' ', line),
            Line::Removed(line) => ('-', line),
            Line::Added(line) => ('+', line),
        };
        text.push(sign);
        text += line;
        if !line.ends_with('\n') {
            text += "\n\\ No newline at end of file\n";
        }
    }
    text
}
