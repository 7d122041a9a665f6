//! Length, module docs and names of files, open tasks, and data files that must exist.

use super::{File, Violation};

/// Limit of lines in a file: a longer one is not read from top to bottom.
const LINES_MAX: usize = 1_000;

/// Names of files and folders that do not describe the content.
const BANNED: &[&str] = &["common", "helper", "helpers", "misc", "util", "utils"];

/// Data files that the embedded API server and `apimachinery` are built from.
const DATA: &[&str] = &[
    "crates/apimachinery/data/v1.36/protobuf.txt",
    "crates/apiserver/data/cells.txt",
    "crates/apiserver/data/defaults.txt",
    "crates/apiserver/data/field-selectors.txt",
    "crates/apiserver/data/v1.36/definitions.txt",
    "crates/apiserver/data/v1.36/descriptions.txt",
    "crates/apiserver/data/v1.36/apiservices.txt",
    "crates/apiserver/data/v1.36/kinds.json",
    "crates/apply-types/data/v1.36/types.txt",
];

// In two parts, or this file would be its own violation.
const LEFT_TO_DO: &str = concat!("TO", "DO");

/// Returns the violations in `files`.
pub(super) fn check(files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files {
        name(file, &mut violations);
        if file.path.ends_with(".rs") {
            rust(file, &mut violations);
        }
    }
    for path in DATA {
        if !files
            .iter()
            .any(|file| file.path == *path && !file.text.is_empty())
        {
            violations.push(violation(path, 1, "this data file is missing or empty"));
        }
    }
    violations
}

fn violation(path: &str, line: usize, what: impl Into<String>) -> Violation {
    Violation {
        path: path.to_owned(),
        line,
        what: what.into(),
    }
}

fn name(file: &File, violations: &mut Vec<Violation>) {
    for part in file.path.split('/') {
        let stem = part.split('.').next().unwrap_or_default();
        if BANNED.contains(&stem) {
            let what = format!("{part:?} does not describe its content: name it after the content");
            violations.push(violation(&file.path, 1, what));
        }
    }
}

fn rust(file: &File, violations: &mut Vec<Violation>) {
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        let what = format!("{lines} lines are more than {LINES_MAX}");
        violations.push(violation(&file.path, lines, what));
    }
    if !is_test_module(&file.path) && !file.text.starts_with("//!") {
        violations.push(violation(
            &file.path,
            1,
            "a module starts with a //! description",
        ));
    }
    for (index, line) in file.text.lines().enumerate() {
        if has_left_to_do_without_issue(line) {
            let what = format!("write {LEFT_TO_DO}(#123) with the number of an issue");
            violations.push(violation(&file.path, index + 1, what));
        }
    }
}

/// `tests.rs`, or a module below it.
pub(super) fn is_test_module(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.contains("/src/")
            && path.contains("/tests/")
            && path.rfind("/tests/") > path.find("/src/")
}

fn has_left_to_do_without_issue(line: &str) -> bool {
    let mut rest = line;
    while let Some(at) = rest.find(LEFT_TO_DO) {
        let (before, after) = (
            rest.get(..at).unwrap_or_default(),
            rest.get(at + LEFT_TO_DO.len()..),
        );
        let after = after.unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let in_word = before.chars().next_back().is_some_and(is_word)
            || after.chars().next().is_some_and(is_word);
        let issue = after
            .strip_prefix("(#")
            .and_then(|issue| issue.split_once(')'));
        let has_issue = issue.is_some_and(|(number, _)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if !in_word && !has_issue {
            return true;
        }
        rest = after;
    }
    false
}
