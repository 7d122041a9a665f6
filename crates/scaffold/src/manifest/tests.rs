use super::*;

const TEXT: &str = "[package]\nname = \"robot-operator\" # the name\nversion = \"1\"\n\n[ignored]\nname = \"x\"\n\n[package.metadata.opkit] # settings\ndomain = 'a.b'\n\n[lib]\npath = \"lib/root.rs\"\n";

#[test]
fn values_are_read_from_their_table() {
    assert_eq!(
        value(TEXT, "package", "name").as_deref(),
        Some("robot-operator")
    );
    assert_eq!(value(TEXT, TABLE, "domain").as_deref(), Some("a.b"));
    assert_eq!(value(TEXT, TABLE, "image"), None);
    assert_eq!(
        value("[package]\nname.workspace = true\n", "package", "name"),
        None
    );
}

#[test]
fn values_are_set_and_everything_else_stays() {
    let domain = set(TEXT, "domain", "c.d");
    assert_eq!(domain, TEXT.replace("'a.b'", "\"c.d\""));
    let image = set(TEXT, "image", "x");
    assert_eq!(
        image,
        TEXT.replace("# settings\n", "# settings\nimage = \"x\"\n")
    );
    let text = "[package]\r\nname = \"a\"";
    let expected = "[package]\r\nname = \"a\"\r\n\r\n[package.metadata.opkit]\r\nimage = \"x\"\r\n";
    assert_eq!(set(text, "image", "x"), expected);
}

#[test]
fn modules_follow_from_paths() {
    let mut tree = Tree::default();
    tree.insert("Cargo.toml", TEXT);
    tree.insert("lib/root.rs", "");
    let manifest = Manifest::of(&tree).unwrap();
    assert_eq!(manifest.library, "robot_operator");
    let module = |path: &str| manifest.module(path).map(|path| path.join("::"));
    assert_eq!(module("lib/root.rs").as_deref(), Some(""));
    assert_eq!(
        module("lib/fleet/robot.rs").as_deref(),
        Some("fleet::robot")
    );
    assert_eq!(module("lib/fleet/mod.rs").as_deref(), Some("fleet"));
    assert_eq!(module("lib/main.rs"), None);
    assert_eq!(module("src/robot.rs"), None);
}
