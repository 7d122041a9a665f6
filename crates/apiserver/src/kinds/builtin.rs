//! The built-in kinds, from the data files.
//!
//! `cargo xtask kinds` wrote `kinds.json` and `groups.txt` from what a real server says of itself;
//! `cells.txt` is written by hand, since no server publishes what it holds.
//! They are parsed once per process, on first use.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{Kind, sections};

const KINDS: &str = include_str!("../../data/v1.36/kinds.json");
const GROUPS: &str = include_str!("../../data/v1.36/groups.txt");
const CELLS: &str = include_str!("../../data/cells.txt");

static TABLE: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(parse);

/// Every built-in kind, by group, version and plural.
pub(super) fn kinds() -> &'static [Arc<Kind>] {
    &TABLE
}

/// The built-in groups in the order in which a real server lists them; the core group is not one of
/// them.
pub(super) fn groups() -> impl Iterator<Item = &'static str> {
    GROUPS.lines()
}

/// The cells of each resource, as `Column: RULE`.
pub(super) fn cells() -> BTreeMap<&'static str, Vec<&'static str>> {
    sections(CELLS)
}

/// The table is part of the program, so that it parses is for a test to show, not for a user to
/// learn.
fn parse() -> Vec<Arc<Kind>> {
    match serde_json::from_str::<Vec<Kind>>(KINDS) {
        Ok(mut kinds) => {
            let cells = cells();
            for kind in &mut kinds {
                let resource = kind.resource_line();
                fill(
                    kind,
                    cells
                        .get(resource.as_str())
                        .map(Vec::as_slice)
                        .unwrap_or_default(),
                );
            }
            kinds.into_iter().map(Arc::new).collect()
        }
        Err(error) => {
            debug_assert!(false, "kinds.json: {error}");
            Vec::new()
        }
    }
}

fn fill(kind: &mut Kind, cells: &[&str]) {
    for (name, rule) in cells.iter().filter_map(|line| line.split_once(": ")) {
        for column in kind.columns.iter_mut().filter(|column| column.name == name) {
            rule.trim().clone_into(&mut column.cell);
        }
    }
}
