use super::*;

fn packages(names: &[&str]) -> Vec<Package> {
    let packages = names.iter().map(|name| Package {
        name: (*name).to_owned(),
        binary: (*name).to_owned(),
        directory: Path::new("/w").join(name),
        workspace: "/w".into(),
        target: "/w/target".into(),
        settings: PackageSettings::default(),
    });
    packages.collect()
}

#[test]
fn an_operator_is_chosen_by_name_or_directory() {
    let check = |names: &[&str], name: Option<&str>, here: &str, expected: &str| {
        let found = choose(packages(names), name, Path::new(here));
        let found = found.map_or_else(|error| error.to_string(), |package| package.name);
        assert_eq!(found, expected);
    };
    // By name, in any directory.
    check(&["a", "b"], Some("b"), "/w/a", "b");
    // The operator of the directory, or of a directory above it.
    check(&["a", "b"], None, "/w/b", "b");
    check(&["a", "b"], None, "/w/b/src/deep", "b");
    check(&["a", "a/nested"], None, "/w/a/nested/src", "a/nested");
    // The only operator, in any directory of the workspace.
    check(&["a"], None, "/w", "a");
    check(&["a"], None, "/w/library", "a");
    let several = "there are several operators in this workspace: a, b; choose one by its name: `opkit dev NAME`, or -p NAME";
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
