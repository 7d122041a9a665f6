use std::io::Write;
use std::process::{Command, Stdio};

use super::*;
use crate::{AddApi, AddController, AddVersion, AddWebhook, Outcome};

fn project(name: &str) -> NewProject {
    NewProject::new(name, Dependency::Version("0.1".into()), 2026)
}

/// Formats a Rust text with rustfmt, or returns `None` if there is none on this machine.
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

/// Checks that all Rust files of a project can be parsed, and are as rustfmt writes them.
pub(crate) fn check_sources(tree: &Tree) {
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        syn::parse_str::<syn::File>(text).unwrap_or_else(|error| panic!("{path}: {error}\n{text}"));
        if let Some(formatted) = formatted(&text.replace("mod ", "mod ")) {
            assert_eq!(text, formatted, "{path}");
        }
    }
}

/// Returns the tree after a command.
fn after(tree: &Tree, outcome: Result<Outcome>) -> Tree {
    let mut tree = tree.clone();
    for change in outcome.unwrap().changes.iter() {
        match &change.after {
            Some(text) => tree.insert(&change.path, text),
            None => tree.remove(&change.path),
        }
    }
    tree
}

#[test]
fn smoke() {
    let tree = project("robot-operator").tree().unwrap();
    for (path, text) in tree.files() {
        println!("=== {path}\n{text}");
    }
    let api = AddApi::new("Arm");
    let t2 = after(&tree, api.apply(&tree));
    println!("{}", api.apply(&tree).unwrap().changes.diff());
    let v = AddVersion {
        kind: "Robot".into(),
        version: "v1".into(),
    };
    println!("{}", v.apply(&t2).unwrap().changes.diff());
    let mut w = AddWebhook::new("Robot");
    w.defaulting = true;
    w.validation = true;
    println!("{}", w.apply(&t2).unwrap().changes.diff());
    println!(
        "{}",
        AddController::new("Pod").apply(&t2).unwrap().changes.diff()
    );
    check_sources(&tree);
}
