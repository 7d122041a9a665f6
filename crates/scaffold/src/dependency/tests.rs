use super::*;

fn of(manifest: &str) -> Result<Dependency> {
    let mut tree = Tree::default();
    tree.insert("Cargo.toml", manifest);
    Dependency::of_manifest(&tree)
}

#[test]
fn the_dependency_is_read_from_its_spellings() {
    let path = Dependency::Path("../opkit/crates/opkit".into());
    let git = Dependency::Git("https://example.com/opkit".into());
    let version = Dependency::Version("0.1".into());
    for (manifest, expected) in [
        (
            "[dependencies]\nopkit = { path = \"../opkit/crates/opkit\", features = [\"v1_36\"] }\n",
            &path,
        ),
        (
            "[dependencies]\nopkit = { git = 'https://example.com/opkit' } # comment\n",
            &git,
        ),
        ("[dependencies]\nopkit = \"0.1\"\n", &version),
        (
            "[dependencies.opkit]\nversion = \"0.1\"\nfeatures = [\"v1_36\"]\n",
            &version,
        ),
        (
            "[dev-dependencies]\nopkit = \"0.2\"\n[dependencies]\nopkit = { features = [], version = \"0.1\" }\n",
            &version,
        ),
    ] {
        assert_eq!(of(manifest).unwrap(), *expected, "{manifest}");
    }
    for wrong in ["", "[dependencies]\nopkit.workspace = true\n"] {
        let error = of(wrong).unwrap_err().to_string();
        assert!(error.contains("no line `opkit = { ... }`"), "{error}");
    }
}

#[test]
fn the_command_is_installed_from_the_same_source() {
    let path = Dependency::Path("../opkit/crates/opkit".into());
    assert_eq!(
        path.install_command(Some("/workspaces/a")),
        "cargo install --locked --path /workspaces/a/../opkit/crates/cli"
    );
    assert_eq!(
        Dependency::Git("https://example.com/opkit".into()).install_command(None),
        "cargo install --locked --git https://example.com/opkit opkit-cli"
    );
    assert_eq!(
        Dependency::Version("0.1".into()).install_command(None),
        "cargo install --locked opkit-cli --version 0.1"
    );
}
