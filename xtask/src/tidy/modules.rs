//! Which folder of a crate may use which: the parts of `controller`, in the order of the flow.
//!
//! The crate compiles as a whole, so the compiler allows cycles between its modules. This check
//! does not: a folder uses the folders below it, by their full path `crate::<folder>::...`.

use super::{File, Violation, files};

/// Root of the checked crate.
const SOURCES: &str = "crates/controller/src/";

/// Each folder, and the folders that it may use. From the manager, which starts everything, over
/// the way of an event (source, worker, reconcile, context) to the small types that all share. Each
/// folder uses only folders that come after it, so there is no cycle.
pub(super) const FOLDERS: &[(&str, &[&str])] = &[
    (
        "manager",
        &[
            "builder", "context", "error", "object", "reads", "record", "source", "state", "worker",
        ],
    ),
    (
        "worker",
        &[
            "builder",
            "context",
            "error",
            "object",
            "reads",
            "reconcile",
            "record",
            "source",
            "state",
        ],
    ),
    (
        "builder",
        &[
            "context",
            "error",
            "object",
            "reads",
            "reconcile",
            "source",
            "state",
        ],
    ),
    ("source", &["context", "object", "reads", "record"]),
    ("reconcile", &["context", "error", "object"]),
    ("context", &["error", "object", "reads", "record", "state"]),
    ("state", &["error", "reads"]),
    ("reads", &["error", "object"]),
    ("record", &["object"]),
    ("object", &[]),
    ("error", &[]),
];

/// Returns the violations of all files of the crate.
pub(super) fn check(all: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in all {
        let Some(path) = file.path.strip_prefix(SOURCES) else {
            continue;
        };
        if path == "lib.rs" || !path.ends_with(".rs") {
            continue;
        }
        for (line, what) in check_file(path, &file.text, files::is_test_module(&file.path)) {
            violations.push(Violation {
                path: file.path.clone(),
                line,
                what,
            });
        }
    }
    violations
}

/// Returns the violations of the file at `path` below the root of the crate, each with its line.
fn check_file(path: &str, text: &str, is_test: bool) -> Vec<(usize, String)> {
    let Some((folder, _)) = path.split_once('/') else {
        let what = "move this file to a folder that names its place in the flow";
        return vec![(1, what.to_owned())];
    };
    let Some((_, allowed)) = FOLDERS.iter().find(|(name, _)| *name == folder) else {
        let what = format!("{folder} is not in the table of xtask/src/tidy/modules.rs");
        return vec![(1, what)];
    };
    // Tests run the crate as a whole.
    if is_test {
        return Vec::new();
    }
    let mut found = Vec::new();
    let code = text.lines().enumerate();
    for (index, line) in code.filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for used in line.split("crate::").skip(1) {
            let mut words = used.split(|char: char| !char.is_alphanumeric() && char != '_');
            let used = words.next().unwrap_or_default();
            let is_folder = FOLDERS.iter().any(|(name, _)| *name == used);
            if !is_folder {
                let what = "name the folder: write crate::<folder>::<item>, one use per module";
                found.push((index + 1, what.to_owned()));
            } else if used != folder && !allowed.contains(&used) {
                found.push((index + 1, format!("{folder} may not use {used}")));
            }
        }
        if line.contains(&"super::".repeat(depth(path))) {
            let what = "super:: leads to the root of the crate here: write crate::<folder>::<item>";
            found.push((index + 1, what.to_owned()));
        }
    }
    found
}

/// Returns the number of `super::` that lead from the module at `path` to the root of the crate.
fn depth(path: &str) -> usize {
    let parts = path.split('/').count();
    match path.ends_with("/mod.rs") {
        true => parts - 1,
        false => parts,
    }
}
