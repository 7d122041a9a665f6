//! Hand-written projects: each command does what is meant, or refuses and changes nothing.

use crate::{
    AddApi, AddController, AddWebhook, Dependency, Edit, NewProject, Outcome, RemoveApi,
    RemoveController, RemoveWebhook, Result, Tree,
};

mod kinds;
mod operators;
mod refused;

/// Returns a new project, with other texts in some files.
fn project(files: &[(&str, &str)]) -> Tree {
    let opkit = Dependency::Version("0.1".into());
    let mut tree = NewProject::new("robot-operator", opkit, 2026)
        .tree()
        .unwrap();
    for (path, text) in files {
        tree.insert(*path, *text);
    }
    tree
}

/// Returns the tree after a command.
fn after(tree: &Tree, outcome: &Outcome) -> Tree {
    let mut tree = tree.clone();
    for change in outcome.changes.iter() {
        match &change.after {
            Some(text) => tree.insert(&change.path, text),
            None => tree.remove(&change.path),
        }
    }
    tree
}

/// Checks that commands add to a project and remove from it again:
///
/// - the file of `operator()` has each of the expected texts afterwards,
/// - a second run changes nothing,
/// - the command that removes restores every byte.
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let before = project(files);
    let place = files.first().map_or("src/lib.rs", |(path, _)| path);
    let added = run(&before, &AddApi::new("Arm").apply(&before));
    let text = added.get(place).unwrap();
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    let again = AddApi::new("Arm").apply(&added).unwrap();
    assert!(again.changes.is_empty(), "{}", again.changes.diff());
    let remove = RemoveApi { kind: "Arm".into() };
    let removed = run(&added, &remove.apply(&added));
    same(&removed, &before);

    let mut webhook = AddWebhook::new("Robot");
    webhook.validation = true;
    webhook.defaulting = true;
    let added = run(&before, &webhook.apply(&before));
    let calls = added
        .get(place)
        .unwrap()
        .matches("robot::webhook()")
        .count();
    assert_eq!(calls, 1, "{}", added.get(place).unwrap());
    assert!(webhook.apply(&added).unwrap().changes.is_empty());
    let remove = RemoveWebhook {
        kind: "Robot".into(),
        group: None,
        defaulting: false,
        validation: false,
    };
    let removed = run(&added, &remove.apply(&added));
    same(&removed, &before);

    let controller = AddController::new("Deployment");
    let added = run(&before, &controller.apply(&before));
    let text = added.get(place).unwrap();
    assert_eq!(
        text.matches("deployment::controller()").count(),
        1,
        "{text}"
    );
    assert!(controller.apply(&added).unwrap().changes.is_empty());
    let remove = RemoveController {
        kind: "Deployment".into(),
        group: None,
        name: None,
    };
    let removed = run(&added, &remove.apply(&added));
    same(&removed, &before);

    let mut edit = Edit {
        namespaced: Some(true),
        ..Edit::default()
    };
    let added = run(&before, &edit.apply(&before));
    assert_eq!(
        added.get(place).unwrap().matches(".namespaced()").count(),
        1
    );
    assert!(edit.apply(&added).unwrap().changes.is_empty());
    edit.namespaced = Some(false);
    same(&run(&added, &edit.apply(&added)), &before);
}

/// Returns the tree after a command, whose files can all be parsed.
fn run(tree: &Tree, outcome: &Result<Outcome>) -> Tree {
    let outcome = outcome.as_ref().unwrap_or_else(|error| panic!("{error}"));
    let tree = after(tree, outcome);
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        syn::parse_str::<syn::File>(text).unwrap_or_else(|error| panic!("{path}: {error}\n{text}"));
    }
    tree
}

/// Checks that two trees have the same code. A method chain that was on one line stays broken.
fn same(one: &Tree, other: &Tree) {
    let paths = |tree: &Tree| {
        tree.files()
            .map(|(path, _)| path.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(one), paths(other));
    for (path, text) in one.files() {
        let expected = other.get(path).unwrap();
        let is_line = |text: &str| text.contains(").crd::<Robot>()");
        if is_line(expected) {
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(words(text), words(expected), "{path}");
        } else {
            assert_eq!(text, expected, "{path}");
        }
    }
}

/// Checks that commands refuse a project with a message that starts so.
fn check_refused(files: &[(&str, &str)], expected: &str) {
    let tree = project(files);
    let error = AddApi::new("Arm").apply(&tree).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

/// Checks that every command refuses a project whose `operator()` cannot be edited. Commands that
/// remove may have nothing to do.
fn check_all_refused(files: &[(&str, &str)], expected: &str) {
    check_refused(files, expected);
    let tree = project(files);
    let mut webhook = AddWebhook::new("Robot");
    webhook.validation = true;
    let edit = Edit {
        namespaced: Some(true),
        ..Edit::default()
    };
    let adding = [
        webhook.apply(&tree),
        AddController::new("Deployment").apply(&tree),
        edit.apply(&tree),
    ];
    for outcome in adding {
        let error = outcome.unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }
    let api = RemoveApi {
        kind: "Robot".into(),
    };
    let webhook = RemoveWebhook {
        kind: "Robot".into(),
        group: None,
        defaulting: false,
        validation: false,
    };
    let controller = RemoveController {
        kind: "Robot".into(),
        group: None,
        name: None,
    };
    let mut removing = vec![api.apply(&tree), webhook.apply(&tree)];
    if files
        .iter()
        .any(|(_, text)| text.contains("robot::controller"))
    {
        removing.push(controller.apply(&tree));
    }
    for outcome in removing {
        match outcome {
            Ok(outcome) => assert!(outcome.changes.is_empty(), "{}", outcome.changes.diff()),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}
