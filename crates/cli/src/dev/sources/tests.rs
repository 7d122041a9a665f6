use tempfile::TempDir;

use super::*;

#[test]
fn the_dependency_file_of_cargo_is_parsed() {
    let paths = |list: &str| -> Vec<String> {
        let files = files(list).into_iter();
        files.map(|file| file.display().to_string()).collect()
    };
    assert_eq!(
        paths("/t/op: /a/src/main.rs /a/build.rs\n"),
        ["/a/src/main.rs", "/a/build.rs"]
    );
    assert_eq!(
        paths("/t/op: /a\\ b/src/main.rs /c\n"),
        ["/a b/src/main.rs", "/c"]
    );
    assert_eq!(paths(""), [""; 0]);
}

/// Package with a build beside it.
struct Tree(TempDir);

impl Tree {
    fn new() -> (Self, Sources) {
        let tree = Self(TempDir::new().unwrap());
        tree.write("Cargo.toml", "");
        tree.write("op/Cargo.toml", "");
        tree.write("op/src/main.rs", "1");
        tree.write("dependency/Cargo.toml", "");
        tree.write("dependency/src/lib.rs", "1");
        tree.write("notes/text.txt", "1");
        let files = ["op/src/main.rs", "dependency/src/lib.rs", "notes/text.txt"];
        let files = files.map(|file| tree.path(file).display().to_string());
        tree.write("target/op.d", &format!("/t/op: {}\n", files.join(" ")));
        let mut sources = Sources::of(&tree.path("target/op"), &tree.path("op"), tree.0.path());
        sources.mark();
        (tree, sources)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn an_edit_of_any_built_file_is_found() {
    for file in [
        "op/src/main.rs",
        "op/src/new/module.rs",
        "op/Cargo.toml",
        "op/build.rs",
        "dependency/src/lib.rs",
        "dependency/src/new.rs",
        "notes/text.txt",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        let (tree, mut sources) = Tree::new();
        assert_eq!(sources.changed(), None);
        // The length differs, so that the resolution of the file system's clock does not matter.
        tree.write(file, "longer than before");
        assert_eq!(sources.changed(), Some(tree.path(file)));
        sources.mark();
        assert_eq!(sources.changed(), None);
    }
}

#[test]
fn a_removed_file_is_found() {
    let (tree, sources) = Tree::new();
    fs::remove_file(tree.path("dependency/src/lib.rs")).unwrap();
    assert_eq!(sources.changed(), Some(tree.path("dependency/src/lib.rs")));
}

#[test]
fn files_that_are_not_built_are_ignored() {
    let (tree, sources) = Tree::new();
    for file in [
        "op/README.md",
        "op/src/.main.rs.swp",
        "op/src/main.rs~",
        "target/op",
        "other/src/lib.rs",
    ] {
        tree.write(file, "longer than before");
        assert_eq!(sources.changed(), None, "{file}");
    }
}

#[test]
fn an_edit_during_a_build_is_found_after_it() {
    let (tree, before) = Tree::new();
    tree.write("op/src/main.rs", "longer than before");
    tree.write("op/src/new.rs", "1");
    let mut after = Sources::of(&tree.path("target/op"), &tree.path("op"), tree.0.path());
    after.keep(&before);
    assert_eq!(after.changed(), Some(tree.path("op/src/main.rs")));
}

#[test]
fn an_edit_during_the_first_build_is_found_after_it() {
    let (tree, mut sources) = Tree::new();
    let later = SystemTime::now() + std::time::Duration::from_secs(60);
    assert_eq!(sources.written_since(later), None);
    let write = |path: &str| {
        tree.write(path, "2");
        let file = fs::File::options()
            .append(true)
            .open(tree.path(path))
            .unwrap();
        file.set_modified(later).unwrap();
    };
    // The build itself writes the lock file.
    write("Cargo.lock");
    sources.mark();
    assert_eq!(sources.written_since(later), None);
    write("dependency/src/lib.rs");
    sources.mark();
    assert_eq!(
        sources.written_since(later),
        Some(tree.path("dependency/src/lib.rs"))
    );
}
