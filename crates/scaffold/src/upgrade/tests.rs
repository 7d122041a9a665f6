use super::*;
use crate::{AddTooling, NewProject, Tooling, golden};

const PATH: &str = "../opkit/crates/opkit";

fn project(opkit: &Dependency) -> Tree {
    let mut tree = NewProject::new("robot-operator", opkit.clone(), 2026)
        .tree()
        .unwrap();
    for tooling in [Tooling::Ci, Tooling::Dockerfile, Tooling::Devcontainer] {
        let added = AddTooling::new(tooling).apply(&tree).unwrap();
        tree = golden::after(&tree, &added);
    }
    tree
}

const CHANGELOG: &str = "\
# Changelog

## Unreleased

### Breaking

- **cache**: write `Reader` instead of `Lister`. You notice it
  by a compile error.

### Added

- **cli**: a flag.

## 0.2.0 - 2026-05-01

### Breaking

- **client**: a list has pages.
- **client**: write `get` instead of `read`.

## 0.1.0

### Breaking

- **opkit**: this is older than the project.
";

fn upgrade(version: &str, to: Option<Dependency>) -> Upgrade {
    Upgrade {
        version: version.to_owned(),
        to,
        locked: None,
    }
}

/// Applies an upgrade twice; the second time changes nothing.
fn apply(upgrade: &Upgrade, tree: &Tree) -> (String, Tree) {
    let outcome = upgrade.apply_with(tree, CHANGELOG).unwrap();
    let after = golden::after(tree, &outcome);
    let again = upgrade.apply_with(&after, CHANGELOG).unwrap();
    assert!(
        again.changes.is_empty() && again.next.is_none(),
        "{}",
        again.changes.diff()
    );
    let next = outcome.next.unwrap_or_default();
    let by_hand = outcome.by_hand.iter();
    let by_hand: String = by_hand.map(|it| format!("by hand: {it}\n")).collect();
    let diff = outcome.changes.diff();
    (format!("{diff}{by_hand}next: {next}\n"), after)
}

#[test]
fn a_version_follows_the_command() {
    let tree = project(&Dependency::Version("0.1".into()));
    let (diff, after) = apply(&upgrade("0.2.3", None), &tree);
    golden::check("upgrade-version.diff", &diff);
    // The files are those of a project with the new version.
    assert_eq!(after, project(&Dependency::Version("0.2".into())));
    // A version that the requirement allows changes nothing.
    assert!(
        upgrade("0.1.9", None)
            .apply(&tree)
            .unwrap()
            .changes
            .is_empty()
    );
}

#[test]
fn a_version_that_the_requirement_allows_has_a_next_step() {
    let tree = project(&Dependency::Version("0.1".into()));
    let lock = "version = 4\n\n[[package]]\nname = \"opkit-cache\"\nversion = \"9.0.0\"\n\n\
                [[package]]\nname = \"opkit\"\nversion = \"0.1.0\"\n";
    let locked = Upgrade::locked_version(lock);
    assert_eq!(locked.as_deref(), Some("0.1.0"));
    assert_eq!(Upgrade::locked_version("version = 4\n"), None);
    let mut command = upgrade("0.1.9", None);
    command.locked = locked;
    let outcome = command.apply_with(&tree, "").unwrap();
    assert!(outcome.changes.is_empty() && outcome.by_hand.is_empty());
    let next = "cargo update -p opkit && cargo test";
    assert_eq!(outcome.next.as_deref(), Some(next));
    command.locked = Some("0.1.9".to_owned());
    assert_eq!(command.apply_with(&tree, CHANGELOG).unwrap().next, None);
}

#[test]
fn breaking_changes_between_two_versions_are_found() {
    let between = |old, new| breaking::between(CHANGELOG, old, new);
    let (cache, list, get) = (
        "**cache**: write `Reader` instead of `Lister`. You notice it by a compile error.",
        "**client**: a list has pages.",
        "**client**: write `get` instead of `read`.",
    );
    assert_eq!(between("0.1", "0.3.0"), [cache, list, get]);
    assert_eq!(between("0.2.0", "0.3.0"), [cache]);
    assert_eq!(between("0.3.0", "0.3.0"), [""; 0]);
    assert_eq!(between("0.3.1", "0.3.0"), [""; 0]);
    assert_eq!(between("*", "0.3.0"), [""; 0]);
    // The changelog of this repository has the same form.
    let all = breaking::between(breaking::CHANGELOG, "0.0.0", "999.0.0");
    assert!(!all.is_empty());
    assert!(all.iter().all(|it| it.starts_with("**")), "{all:?}");
}

#[test]
fn a_project_moves_from_a_checkout_to_the_registry() {
    let tree = project(&Dependency::Path(PATH.into()));
    assert!(
        upgrade("0.2.0", None)
            .apply(&tree)
            .unwrap()
            .changes
            .is_empty()
    );
    let to = Dependency::Version("0.2".into());
    let (diff, after) = apply(&upgrade("0.2.0", Some(to.clone())), &tree);
    golden::check("upgrade-path.diff", &diff);
    assert_eq!(after, project(&to));
    // And back.
    let back = Some(Dependency::Path(PATH.into()));
    assert_eq!(apply(&upgrade("0.2.0", back), &after).1, tree);
}

#[test]
fn a_file_that_was_edited_is_kept_and_named() {
    let mut tree = project(&Dependency::Version("0.1".into()));
    let path = ".github/workflows/ci.yaml";
    let edited = tree.get(path).unwrap().replace("deploy", "manifests") + "# mine\n";
    tree.insert(path, edited.clone());
    // No other version of opkit is in this file.
    let own = "FROM scratch\n";
    tree.insert("Dockerfile", own);
    let (text, after) = apply(&upgrade("0.2.0", None), &tree);
    assert_eq!(
        (after.get(path), after.get("Dockerfile")),
        (Some(&*edited), Some(own))
    );
    assert!(
        text.contains("compare with `opkit add`: .github/workflows/ci.yaml\n"),
        "{text}"
    );
    let container = after.get(".devcontainer/devcontainer.json").unwrap();
    assert!(container.contains("--version 0.2"), "{container}");

    // Another directory of the manifests is an option, not an edit.
    let mut command = AddTooling::new(Tooling::Ci);
    (command.manifests, command.replace) = ("config/all".to_owned(), true);
    let tree = golden::after(&tree, &command.apply(&tree).unwrap());
    let (_, after) = apply(&upgrade("0.2.0", None), &tree);
    let workflow = after.get(path).unwrap();
    assert!(workflow.contains("--version 0.2") && workflow.contains("--out config/all"));
}

#[test]
fn every_form_of_an_entry_is_edited() {
    let version = || Dependency::Version("0.2".into());
    let path = || Dependency::Path("../o".into());
    let git = || Dependency::Git("https://a/o".into());
    for (before, to, after) in [
        (
            "opkit = \"0.1\" # note",
            version(),
            "opkit = \"0.2\" # note",
        ),
        ("opkit = '0.1'", path(), "opkit = { path = \"../o\" }"),
        (
            "opkit = { features = [\"a\", \"b\"], path = \"../x\", version = \"0.1\" }",
            version(),
            "opkit = { features = [\"a\", \"b\"], version = \"0.2\" }",
        ),
        (
            "opkit = {git=\"https://a/o\", tag=\"v0.1.0\", features=[\"v1_36\"]}  # x",
            git(),
            "opkit = { git=\"https://a/o\", tag = \"v0.2.0\", features=[\"v1_36\"] }  # x",
        ),
        (
            "opkit = { git = \"https://a/o\", rev = \"12ab\" }",
            git(),
            "opkit = { git = \"https://a/o\", rev = \"12ab\" }",
        ),
        (
            "opkit = { git = \"https://a/o\", branch = \"next\" }",
            version(),
            "opkit = { version = \"0.2\" }",
        ),
    ] {
        let text =
            |entry: &str| format!("[package]\r\nname = \"a\"\r\n[dependencies]\r\n{entry}\r\n");
        let edited = entry::edit(&text(before), "dependencies", &to, "0.2.0").unwrap();
        assert_eq!(edited, text(after));
        let again = entry::edit(&edited, "dependencies", &to, "0.2.0").unwrap();
        assert_eq!(again, edited);
    }
    let table = "[dependencies.opkit]\npath = \"../x\"\nversion = \"0.1\"\nfeatures = [\"a\"]\n[lib]\npath = \"l\"\n";
    let edited = entry::edit(table, "dependencies", &version(), "0.2.0").unwrap();
    assert_eq!(
        edited,
        "[dependencies.opkit]\nversion = \"0.2\"\nfeatures = [\"a\"]\n[lib]\npath = \"l\"\n"
    );
}

#[test]
fn entries_that_cannot_be_edited_are_refused() {
    for (entry, words) in [
        (
            "opkit = { workspace = true }",
            "Cargo.toml of the workspace",
        ),
        ("opkit.workspace = true", "Cargo.toml of the workspace"),
        (
            "opkit = { path = \"../o\", features = [",
            "on several lines",
        ),
        ("opkit = { features = [] }", "no version, path or git"),
    ] {
        let text = format!("[dependencies]\n{entry}\n");
        let version = Dependency::Version("0.2".into());
        let error = entry::edit(&text, "dependencies", &version, "0.2.0").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("Cargo.toml:2") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn a_requirement_stays_if_it_allows_the_version() {
    for (old, version, expected) in [
        ("0.1", "0.1.7", "0.1"),
        ("0.1.2", "0.1.7", "0.1.2"),
        ("0.1.9", "0.1.7", "0.1.7"),
        ("^1.2", "1.5.0", "^1.2"),
        ("1", "2.0.1", "2"),
        ("0.1", "0.2.3", "0.2"),
        ("0.2", "0.1.0", "0.1"),
        ("=0.1.0", "0.1.1", "0.1.1"),
        ("0.1", "0.2.0-rc.1", "0.2.0-rc.1"),
    ] {
        assert_eq!(
            next_requirement(old, version),
            expected,
            "{old} for {version}"
        );
    }
}
