use super::*;
use crate::{NewProject, golden};

fn project(opkit: Dependency) -> Tree {
    NewProject::new("robot-operator", opkit, 2026)
        .tree()
        .unwrap()
}

fn version() -> Dependency {
    Dependency::Version("0.1".into())
}

const ALL: [Tooling; 3] = [Tooling::Ci, Tooling::Dockerfile, Tooling::Devcontainer];

#[test]
fn the_files_of_each() {
    let path = Dependency::Path("../opkit/crates/opkit".into());
    for (opkit, ending) in [(version(), "version"), (path, "path")] {
        let tree = project(opkit);
        for (tooling, name) in ALL.into_iter().zip(["ci", "dockerfile", "devcontainer"]) {
            let outcome = AddTooling::new(tooling).apply(&tree).unwrap();
            let next = outcome.next.clone().unwrap();
            let text = format!("{}next: {next}\n", outcome.changes.diff());
            golden::check(&format!("add-{name}-{ending}.diff"), &text);
        }
    }
}

#[test]
fn an_existing_file_is_kept_and_replaced_on_request() {
    let mut tree = project(version());
    for tooling in ALL {
        let mut command = AddTooling::new(tooling);
        let added = golden::after(&tree, &command.apply(&tree).unwrap());
        let again = command.apply(&added).unwrap();
        assert!(again.changes.is_empty() && again.next.is_none());
        command.replace = true;
        assert!(command.apply(&added).unwrap().changes.is_empty());

        let removed = RemoveTooling { tooling }.apply(&added).unwrap();
        assert_eq!(golden::after(&added, &removed), tree);
        let nothing = RemoveTooling { tooling }.apply(&tree).unwrap();
        assert!(nothing.changes.is_empty());
    }
    tree.insert(DOCKERFILE, "FROM scratch\n");
    let mut command = AddTooling::new(Tooling::Dockerfile);
    let outcome = command.apply(&tree).unwrap();
    let paths: Vec<_> = outcome.changes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, [DOCKERIGNORE]);
    command.replace = true;
    command.libc = Libc::Gnu;
    let outcome = command.apply(&tree).unwrap();
    golden::check("replace-dockerfile-gnu.diff", &outcome.changes.diff());
}

#[test]
fn the_directory_of_the_manifests_is_checked() {
    let mut command = AddTooling::new(Tooling::Ci);
    for wrong in ["", "a b", "--out", "$(x)"] {
        command.manifests = wrong.into();
        let error = command.apply(&project(version())).unwrap_err();
        assert!(error.is_usage(), "{error}");
    }
}

#[test]
fn every_file_is_read_from_a_project() {
    let tree = project(version());
    let mut written = tree.clone();
    for tooling in ALL {
        written = golden::after(&written, &AddTooling::new(tooling).apply(&written).unwrap());
    }
    let directory = tempfile::tempdir().unwrap();
    Tree::default()
        .changes_to(&written)
        .write(directory.path())
        .unwrap();
    let read = Tree::read(directory.path()).unwrap();
    for path in PATHS {
        assert_eq!(read.get(path), written.get(path), "{path}");
        assert!(read.get(path).is_some(), "{path}");
    }
}

#[test]
fn paths_are_resolved_without_a_file_system() {
    for (path, expected) in [
        ("../opkit", "/opkit"),
        ("/home/me/opkit", "/home/me/opkit"),
        ("vendor/./opkit", "/src/vendor/opkit"),
        ("../../../opkit", "/opkit"),
    ] {
        assert_eq!(resolve("/src", path), expected);
    }
}
