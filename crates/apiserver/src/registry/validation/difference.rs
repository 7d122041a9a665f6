//! The difference between two versions of a spec, in the unified format that Kubernetes has in its
//! messages.

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// A line of the difference: whether the old and the new text have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Both(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// Returns the difference between two texts. Returns an empty string if they are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    let lines = compare(
        &old.lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
    let mut out = String::new();
    let is_change = |line: &Line<'_>| !matches!(line, Line::Both(_));
    let changes: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_change(line))
        .map(|(index, _)| index)
        .collect();
    let mut rest = changes.as_slice();
    while let Some((&first, _)) = rest.split_first() {
        let mut last = first;
        while let Some((&next, tail)) = rest.split_first() {
            if next > last + 2 * CONTEXT + 1 {
                break;
            }
            (last, rest) = (next, tail);
        }
        let start = first.saturating_sub(CONTEXT);
        let end = (last + CONTEXT + 1).min(lines.len());
        hunk(&lines, start, end, &mut out);
    }
    match out.is_empty() {
        true => out,
        false => format!("@@{out}"),
    }
}

fn hunk(lines: &[Line<'_>], start: usize, end: usize, out: &mut String) {
    let count = |lines: &[Line<'_>], in_old: bool| {
        let is_counted = |line: &&Line<'_>| match line {
            Line::Both(_) => true,
            Line::Old(_) => in_old,
            Line::New(_) => !in_old,
        };
        lines.iter().filter(is_counted).count()
    };
    let before = lines.get(..start).unwrap_or_default();
    let inside = lines.get(start..end).unwrap_or_default();
    let range = |in_old: bool| {
        let first = count(before, in_old) + 1;
        match count(inside, in_old) {
            0 => format!("{},0", first - 1),
            1 => first.to_string(),
            length => format!("{first},{length}"),
        }
    };
    if !out.is_empty() {
        out.push_str("@@");
    }
    out.push_str(&format!(" -{} +{} @@\n", range(true), range(false)));
    for line in inside {
        let (sign, text) = match line {
            Line::Both(text) => (' ', text),
            Line::Old(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        out.push_str(&format!("{sign}{text}\n"));
    }
}

/// Aligns two lists of lines by their longest common subsequence.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    let mut lengths = vec![0_usize; (old.len() + 1) * width];
    let get = |lengths: &[usize], i: usize, j: usize| {
        lengths.get(i * width + j).copied().unwrap_or_default()
    };
    for (i, before) in old.iter().enumerate().rev() {
        for (j, after) in new.iter().enumerate().rev() {
            let length = match before == after {
                true => get(&lengths, i + 1, j + 1) + 1,
                false => get(&lengths, i + 1, j).max(get(&lengths, i, j + 1)),
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (old.get(i), new.get(j)) {
            (Some(before), Some(after)) if before == after => {
                lines.push(Line::Both(before));
                (i, j) = (i + 1, j + 1);
            }
            (Some(before), after)
                if after.is_none() || get(&lengths, i + 1, j) >= get(&lengths, i, j + 1) =>
            {
                lines.push(Line::Old(before));
                i += 1;
            }
            (_, Some(after)) => {
                lines.push(Line::New(after));
                j += 1;
            }
            _ => return lines,
        }
    }
}

#[cfg(test)]
mod tests;
