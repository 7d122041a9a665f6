use super::*;

fn packages(names: &[&str]) -> Vec<Package> {
    let packages = names.iter().map(|name| Package {
        name: (*name).to_owned(),
        binary: (*name).to_owned(),
        directory: Path::new("/w").join(name),
        workspace: "/w".into(),
    });
    packages.collect()
}

#[test]
fn the_operator_that_is_meant_is_found() {
    let check = |names: &[&str], name: Option<&str>, here: &str, expected: &str| {
        let found = choose(packages(names), name, Path::new(here));
        let found = found.map_or_else(|error| error.to_string(), |package| package.name);
        assert_eq!(found, expected);
    };
    // By name, wherever it is.
    check(&["a", "b"], Some("b"), "/w/a", "b");
    // That of the directory, or of one above it.
    check(&["a", "b"], None, "/w/b", "b");
    check(&["a", "b"], None, "/w/b/src/deep", "b");
    check(&["a", "a/nested"], None, "/w/a/nested/src", "a/nested");
    // The only one, from anywhere in the workspace.
    check(&["a"], None, "/w", "a");
    check(&["a"], None, "/w/library", "a");
    let several = "there are several operators in this workspace: a, b; say which: opkit dev NAME";
    check(&["a", "b"], None, "/w", several);
    check(&["a", "b"], None, "/w/ab", several);
    let none = "(no package here depends on opkit and has a binary)";
    check(
        &[],
        None,
        "/w",
        &format!("there is no operator in this workspace {none}"),
    );
    check(
        &[],
        Some("c"),
        "/w",
        &format!("there is no operator named c in this workspace {none}"),
    );
    let other = "there is no operator named c in this workspace (the operators here are a, b)";
    check(&["a", "b"], Some("c"), "/w", other);
}
