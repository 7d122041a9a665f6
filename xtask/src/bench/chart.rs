//! Charts of the tables that benchmarks print: one bar for each ratio to a peer.
//!
//! `cargo xtask bench charts` draws those of BENCHMARKS.md into `docs/pictures`; a benchmark draws
//! the chart of its own run into the target directory.

mod draw;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::table::Table;

const BENCHMARKS: &str = "BENCHMARKS.md";

/// Draws the charts of all tables of BENCHMARKS.md that have ratios.
pub(super) fn draw_all(root: &Path) -> Result<()> {
    for (path, chart) in charts(root)? {
        std::fs::write(root.join(&path), chart)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Draws the chart of one run from the table that it printed. Returns whether it had ratios.
pub(super) fn draw_run(title: &str, printed: &str, path: &Path) -> Result<bool> {
    let mut tables = Table::parse_all(printed);
    tables.retain(|table| !table.rows.is_empty());
    let Some(table) = tables.first() else {
        return Ok(false);
    };
    let directory = path.parent().context("the chart has no directory")?;
    std::fs::create_dir_all(directory).context("cannot create the directory of the chart")?;
    std::fs::write(path, draw::chart(title, table))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// Returns the charts of BENCHMARKS.md with their paths in the repository.
fn charts(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let text = std::fs::read_to_string(root.join(BENCHMARKS)).context("cannot read the tables")?;
    let tables = Table::parse_all(&text);
    let with_ratios = tables.iter().filter(|table| !table.rows.is_empty());
    let charts = with_ratios.map(|table| {
        let name = table.section.to_lowercase();
        let name = name.strip_prefix("the ").unwrap_or(&name).replace(' ', "-");
        let path = PathBuf::from(format!("docs/pictures/bench-{name}.svg"));
        (path, draw::chart(&table.section, table))
    });
    Ok(charts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charts_are_those_of_the_tables() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join(BENCHMARKS)).unwrap();
        let charts = charts(&root).unwrap();
        assert_eq!(charts.len(), 4, "one chart for each benchmark");
        for (path, chart) in charts {
            let drawn = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
            let path = path.display().to_string();
            assert!(drawn == chart, "{path}: run `cargo xtask bench charts`");
            assert!(
                text.contains(&format!("({path})")),
                "{path} is not in {BENCHMARKS}"
            );
        }
    }
}
