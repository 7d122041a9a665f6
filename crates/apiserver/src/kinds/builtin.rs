//! The built-in kinds, from data files.
//!
//! `cargo xtask kinds` writes `kinds.json` and `apiservices.txt` from a real server.
//! `cells.txt` is written by hand: servers do not publish the values of printer columns. The files
//! are parsed once per process, on first use.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{Kind, sections};

const KINDS: &str = include_str!("../../data/v1.36/kinds.json");
const API_SERVICES: &str = include_str!("../../data/v1.36/apiservices.txt");
const CELLS: &str = include_str!("../../data/cells.txt");

/// The group of APIServices, which comes first in discovery and has no APIService itself.
const AGGREGATION: &str = "apiregistration.k8s.io";
/// The warning about the only built-in kind of a stable version that is deprecated.
const ENDPOINTS: &str =
    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

static TABLE: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(parse);

/// Returns all built-in kinds, sorted by group, version and plural name.
pub(super) fn kinds() -> &'static [Arc<Kind>] {
    &TABLE
}

/// Returns the built-in group versions that have an APIService, each with the priorities of its
/// group and its version.
pub(super) fn api_services() -> impl Iterator<Item = (&'static str, &'static str, i64, i64)> {
    API_SERVICES.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (version, group) = words.next()?.split_once('.')?;
        let group_priority = words.next()?.parse().ok()?;
        Some((group, version, group_priority, words.next()?.parse().ok()?))
    })
}

/// Returns the priorities of a built-in group and one of its versions.
pub(super) fn priorities(group: &str, version: &str) -> Option<(i64, i64)> {
    if group == AGGREGATION {
        return Some((i64::MAX, 0));
    }
    let mut rows = api_services();
    let (_, _, group_priority, priority) = rows.find(|row| (row.0, row.1) == (group, version))?;
    Some((group_priority, priority))
}

/// Returns the lines of `cells.txt` by resource. Each line is `COLUMN: RULE`, where the rule
/// computes the cells of the column.
pub(super) fn cells() -> BTreeMap<&'static str, Vec<&'static str>> {
    sections(CELLS)
}

/// Parses the data files, which are compiled into the program. A test checks that the data files
/// are valid.
fn parse() -> Vec<Arc<Kind>> {
    match serde_json::from_str::<Vec<Kind>>(KINDS) {
        Ok(mut kinds) => {
            let cells = cells();
            for kind in &mut kinds {
                if kind.group.is_empty() && kind.plural == "endpoints" {
                    kind.deprecation = Some(ENDPOINTS.to_owned());
                }
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
