//! Suggestions for misspelled names.

/// Returns the known name that is most similar to `name`, or `None` if all known names differ too
/// much.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (name.len() / 3).max(1);
    let near = known.map(|candidate| (distance(name, candidate), candidate));
    let (distance, candidate) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= most).then_some(candidate)
}

/// Returns the edit distance of two names: the number of letters to add, remove, replace or swap
/// with the next letter to turn `from` into `to`.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, a) in from.iter().enumerate() {
        let mut next = vec![row.saturating_add(1)];
        for (column, b) in to.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX);
            let replaced = at(&last, column).saturating_add(usize::from(a != b));
            let removed = at(&last, column.saturating_add(1)).saturating_add(1);
            let added = at(&next, column).saturating_add(1);
            let mut least = replaced.min(removed).min(added);
            let previous = |chars: &[char], at: usize| {
                let at = at.checked_sub(1)?;
                chars.get(at).copied()
            };
            if previous(&from, row) == Some(*b) && previous(&to, column) == Some(*a) && row > 0 {
                let swapped = column
                    .checked_sub(1)
                    .map_or(usize::MAX, |it| at(&before, it));
                least = least.min(swapped.saturating_add(1));
            }
            next.push(least);
        }
        before = last;
        last = next;
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
