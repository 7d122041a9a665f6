//! Tables of ratios in Markdown.

/// A table, and the heading of its section.
pub(super) struct Table {
    pub(super) section: String,
    /// The rows that have a ratio.
    pub(super) rows: Vec<Row>,
}

/// A comparison with a peer.
pub(super) struct Row {
    pub(super) what: String,
    pub(super) peer: String,
    /// How many times better opkit is.
    pub(super) ratio: f64,
    /// The ratio that is required.
    pub(super) must: Option<f64>,
    /// Whether it is reached, by the unrounded figures.
    pub(super) holds: bool,
}

impl Table {
    /// Returns the tables of a text whose columns are `what`, opkit, a peer, `ratio` and `limit`.
    pub(super) fn parse_all(text: &str) -> Vec<Self> {
        let mut tables: Vec<Self> = Vec::new();
        let mut section = String::new();
        let mut peer = None;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                heading.clone_into(&mut section);
            }
            let Some(cells) = cells(line) else {
                peer = None;
                continue;
            };
            let [what, _, theirs, ratio, limit] = cells[..] else {
                continue;
            };
            if (what, ratio) == ("what", "ratio") {
                peer = Some(theirs);
                let section = section.clone();
                let rows = Vec::new();
                tables.push(Self { section, rows });
            } else if let (Some(peer), Some(table)) = (peer, tables.last_mut()) {
                table.rows.extend(row(what, theirs, ratio, limit, peer));
            }
        }
        tables
    }
}

/// Returns the cells of a line, if it is one of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let line = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(line.split('|').map(str::trim).collect())
}

/// Returns the row, if it has a ratio. The peer is named in its cell or by the column.
fn row(what: &str, theirs: &str, ratio: &str, limit: &str, column: &str) -> Option<Row> {
    let peer = match theirs.split_once(": ") {
        Some((peer, _)) => peer,
        None => column,
    };
    Some(Row {
        what: what.to_owned(),
        peer: peer.to_owned(),
        ratio: factor(ratio)?,
        must: limit.strip_prefix("must ").and_then(factor),
        holds: !limit.contains(": does not hold"),
    })
}

/// Parses the `3.5x` that a text starts with.
fn factor(text: &str) -> Option<f64> {
    let (number, _) = text.split_once('x')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_a_ratio_are_read() {
        let text = "## The cache\n\n| what | opkit | peer | ratio | limit |\n|---|---|---|---|---|\n\
             | sync | 1 s | client-go 0.36: 15 s | 15.0x | must 8x: holds |\n\
             | size | 9 B |  |  | must 10 B: holds |\n\n\
             ## Webhooks\n\n| what | opkit | the peer | ratio | limit |\n|---|---|---|---|---|\n\
             | p50 | 1 us | 2 us | 2.9x | must 3x: does not hold |\n\
             | what | before | after |\n| p99 | 1 us | 2 us |\n";
        let tables = Table::parse_all(text);
        let [cache, webhooks] = &tables[..] else {
            panic!("two tables have ratios");
        };
        assert_eq!((cache.section.as_str(), cache.rows.len()), ("The cache", 1));
        let sync = &cache.rows[0];
        assert_eq!(
            (sync.peer.as_str(), sync.ratio, sync.must),
            ("client-go 0.36", 15.0, Some(8.0))
        );
        let p50 = &webhooks.rows[0];
        assert_eq!(
            (p50.peer.as_str(), p50.ratio, p50.must),
            ("the peer", 2.9, Some(3.0))
        );
        assert!(!p50.holds && sync.holds);
    }
}
