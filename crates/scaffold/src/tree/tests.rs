use tempfile::TempDir;

use super::*;

fn project(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

#[test]
fn changes_are_written_and_folders_that_become_empty_are_removed() {
    let directory = project(&[
        ("Cargo.toml", ""),
        ("src/lib.rs", "a\n"),
        ("src/arm/old.rs", "b\n"),
    ]);
    let before = Tree::read(directory.path()).unwrap();
    let mut after = before.clone();
    after.insert("src/lib.rs", "c\n");
    after.insert("tests/new.rs", "d\n");
    after.remove("src/arm/old.rs");
    before.changes_to(&after).write(directory.path()).unwrap();
    assert_eq!(Tree::read(directory.path()).unwrap(), after);
    assert!(!directory.path().join("src/arm").exists());
}

#[test]
fn nothing_is_written_if_a_file_was_changed_meanwhile() {
    let files = [("Cargo.toml", ""), ("src/a.rs", "a\n"), ("src/b.rs", "b\n")];
    let directory = project(&files);
    let before = Tree::read(directory.path()).unwrap();
    let mut after = before.clone();
    after.insert("src/a.rs", "A\n");
    after.insert("src/b.rs", "B\n");
    fs::write(directory.path().join("src/b.rs"), "mine\n").unwrap();
    let error = before.changes_to(&after).write(directory.path());
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "src/b.rs was changed meanwhile (nothing was changed)"
    );
    let now = Tree::read(directory.path()).unwrap();
    assert_eq!(now.get("src/a.rs"), Some("a\n"));
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_others_as_they_are() {
    let directory = project(&[("Cargo.toml", ""), ("src/a.rs", "a\n")]);
    let before = Tree::read(directory.path()).unwrap();
    let mut after = before.clone();
    after.insert("src/a.rs", "A\n");
    after.insert("src/b/c.rs", "B\n");
    // The name of the folder is taken by a file.
    fs::write(directory.path().join("src/b"), "").unwrap();
    let changes = before.changes_to(&after);
    changes.write(directory.path()).unwrap_err();
    assert_eq!(Tree::read(directory.path()).unwrap(), before);
    let names = fs::read_dir(directory.path().join("src")).unwrap();
    assert_eq!(names.count(), 2);
}
