use super::*;

#[test]
fn a_neighbour_is_named_relatively_and_anything_else_absolutely() {
    let check = |package: &str, project: &str, expected: Option<&str>| {
        let found = relative(Path::new(package), Path::new(project));
        assert_eq!(found, expected.map(PathBuf::from));
    };
    check(
        "/a/opkit/crates/opkit",
        "/a/op",
        Some("../opkit/crates/opkit"),
    );
    check("/a/opkit/crates/opkit", "/b/op", None);
    check("/a/opkit/crates/opkit", "/a/b/op", None);
    check("/opkit/crates/opkit", "/op", None);
}

#[test]
fn the_default_is_the_checkout_of_this_command() {
    let library = Library::choose(None, Path::new("/somewhere/op")).unwrap();
    assert!(library.description().ends_with("crates/opkit"));
    assert!(library.lock_file().unwrap().contains("name = \"opkit\""));
    let git = Library::choose(Some("git=https://example.com/x"), Path::new("/op")).unwrap();
    assert_eq!(
        git.dependency,
        Dependency::Git("https://example.com/x".into())
    );
    for wrong in ["path", "path=", "main", "path=/nonexistent"] {
        Library::choose(Some(wrong), Path::new("/op")).unwrap_err();
    }
}
