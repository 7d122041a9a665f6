//! Golden files of tests.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Outcome, Tree};

/// Compares a text with the golden file `golden/<name>`; `OPKIT_BLESS=1` rewrites the file.
pub(crate) fn check(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden");
    let path = folder.join(name);
    if std::env::var_os("OPKIT_BLESS").is_some_and(|value| !value.is_empty()) {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "OPKIT_BLESS=1 rewrites {}", path.display());
}

/// Returns all files of a tree as one text.
pub(crate) fn listing(tree: &Tree) -> String {
    let files = tree.files();
    files
        .map(|(path, text)| format!("=== {path}\n{text}"))
        .collect()
}

/// Returns the tree after a command.
pub(crate) fn after(tree: &Tree, outcome: &Outcome) -> Tree {
    let mut tree = tree.clone();
    for change in outcome.changes.iter() {
        match &change.after {
            Some(text) => tree.insert(&change.path, text),
            None => tree.remove(&change.path),
        }
    }
    tree
}

/// Checks that all Rust files of a tree can be parsed, and are as rustfmt writes them, if there is
/// a rustfmt on this machine.
pub(crate) fn check_format(tree: &Tree) {
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        syn::parse_str::<syn::File>(text).unwrap_or_else(|error| panic!("{path}: {error}\n{text}"));
        if let Some(formatted) = formatted(text) {
            let change = crate::Change {
                path: path.to_owned(),
                before: Some(text.to_owned()),
                after: Some(formatted.clone()),
            };
            assert!(text == formatted, "{}", crate::diff::unified(&change));
        }
    }
}

fn formatted(text: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    rustfmt.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = rustfmt.wait_with_output().ok()?;
    assert!(output.status.success(), "{text}");
    String::from_utf8(output.stdout).ok()
}
