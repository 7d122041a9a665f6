use super::*;
use crate::add::tests::{check, project};
use crate::{
    AddApi, AddController, AddVersion, AddWebhook, Dependency, RemoveApi, Upgrade, golden,
};

fn apply(tree: &Tree) -> Result<Outcome> {
    AddTypesCrate::default().apply(tree)
}

fn after(tree: &Tree, outcome: Result<Outcome>) -> Tree {
    golden::after(tree, &outcome.unwrap())
}

fn api(kind: &str) -> AddApi {
    let mut api = AddApi::new(kind);
    api.controller = false;
    api
}

/// Returns a project with two versions of a kind, a webhook, and a second kind.
fn larger() -> Tree {
    let tree = project();
    let version = AddVersion {
        kind: "Robot".into(),
        version: "v1".into(),
    };
    let tree = after(&tree, version.apply(&tree));
    let mut webhook = AddWebhook::new("Robot");
    webhook.validation = true;
    let tree = after(&tree, webhook.apply(&tree));
    after(&tree, api("Arm").apply(&tree))
}

/// Returns a project whose file of the kind has this text at its end.
fn with(text: &str) -> Tree {
    let mut tree = project();
    let robot = tree.get("src/robot.rs").unwrap().to_owned();
    tree.insert("src/robot.rs", format!("{robot}\n{text}"));
    tree
}

fn robot(tree: &Tree) -> (String, String) {
    let text = |path: &str| tree.get(path).unwrap().to_owned();
    (text("types/src/robot.rs"), text("src/robot.rs"))
}

#[test]
fn the_kind_of_a_new_project() {
    check("add-types-crate.diff", &project(), &apply);
}

#[test]
fn versions_move_and_webhooks_stay() {
    let tree = check("add-types-crate-larger.diff", &larger(), &apply);
    assert!(tree.get("src/robot/v1alpha1.rs").is_none());
}

#[test]
fn functions_of_a_conversion_move_with_their_version() {
    let tree = larger();
    let mut tree = after(&tree, RemoveApi { kind: "Arm".into() }.apply(&tree));
    let path = "src/robot/v1alpha1.rs";
    let text = tree.get(path).unwrap().replace(
        "    #[opkit(default = 1,",
        "    #[opkit(changed_with(up, super::down))]\n    #[opkit(default = 1,",
    );
    let tests = "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn it_goes_up() {\n        assert_eq!(up(1), 2);\n    }\n}\n";
    let up = "fn up(replicas: i32) -> i32 {\n    replicas + 1\n}\n";
    tree.insert(path, format!("{text}\n{up}\n{tests}"));
    let robot_file = tree.get("src/robot.rs").unwrap().to_owned();
    let down = "fn down(replicas: i32) -> i32 {\n    replicas - 1\n}\n";
    tree.insert("src/robot.rs", format!("{robot_file}\n{down}"));
    let tree = after(&tree, apply(&tree));
    // The whole file moves, with its tests.
    assert!(tree.get(path).is_none());
    let moved = tree.get("types/src/robot/v1alpha1.rs").unwrap();
    assert!(moved.contains(up) && moved.ends_with(tests), "{moved}");
    let (types, operator) = robot(&tree);
    assert!(
        types.contains(down) && !operator.contains(down),
        "{operator}"
    );
    golden::check_format(&tree);
}

#[test]
fn a_kind_beside_the_operator_moves_to_the_root() {
    let mut tree = project();
    let robot = tree.get("src/robot.rs").unwrap();
    let (docs, kind) = robot.split_once("\n\n").unwrap();
    let operator = "/// The operator.\npub fn operator() -> Operator {\n    Operator::new(\"robot-operator\").crd::<Robot>()\n}\n";
    let (imports, items) = kind.split_once("\n\n").unwrap();
    tree.insert(
        "src/lib.rs",
        format!("{docs}\n\n{imports}\n\n{operator}\n{items}"),
    );
    tree.remove("src/robot.rs");
    let tree = check("add-types-crate-root.diff", &tree, &apply);
    let root = tree.get("src/lib.rs").unwrap();
    assert!(root.contains("pub use robot_operator_types::*;"), "{root}");
}

#[test]
fn what_a_kind_uses_moves_and_the_rest_stays() {
    let mut tree = with(
        "impl RobotSpec {\n    /// Returns the limit.\n    pub fn limit(&self) -> i32 {\n        limit(self.replicas)\n    }\n}\n\nfn limit(replicas: i32) -> i32 {\n    replicas.min(MAX)\n}\n\nconst MAX: i32 = 7;\n\n/// Counts.\npub trait Count {\n    /// Returns the number.\n    fn count(&self) -> i32;\n}\n\nimpl Count for Robot {\n    fn count(&self) -> i32 {\n        self.spec.limit()\n    }\n}\n",
    );
    tree.insert("src/size.rs", "//! Sizes.\n\nuse opkit::prelude::*;\n\n/// A size.\n#[opkit::schema]\npub struct Size {\n    pub width: i32,\n}\n\n/// Returns the controller of nothing.\npub fn none() -> Option<Action> {\n    None\n}\n");
    let root = tree.get("src/lib.rs").unwrap().to_owned();
    tree.insert(
        "src/lib.rs",
        root.replace("pub mod robot;\n", "pub mod robot;\npub mod size;\n"),
    );
    let robot_file = tree.get("src/robot.rs").unwrap().to_owned();
    tree.insert(
        "src/robot.rs",
        robot_file.replace(
            "    pub replicas: i32,\n",
            "    pub replicas: i32,\n    /// Size.\n    pub size: Option<crate::size::Size>,\n",
        ),
    );
    let tree = check("add-types-crate-uses.diff", &tree, &apply);
    let (types, operator) = robot(&tree);
    assert!(types.contains("const MAX: i32 = 7;"), "{types}");
    assert!(operator.contains("impl Count for Robot {"), "{operator}");
    assert!(!operator.contains("impl RobotSpec"), "{operator}");
    let size = tree.get("types/src/size.rs").unwrap();
    assert!(!size.contains("prelude"), "{size}");
}

#[test]
fn a_name_of_the_prelude_is_exported_by_name() {
    let mut tree = with("/// A request.\n#[opkit::schema]\npub struct Request {}\n");
    let text = tree.get("src/robot.rs").unwrap().to_owned();
    let field = "    pub replicas: i32,\n    /// Request.\n    pub request: Option<Request>,\n";
    tree.insert(
        "src/robot.rs",
        text.replace("    pub replicas: i32,\n", field),
    );
    let (_, operator) = robot(&after(&tree, apply(&tree)));
    let exports = "pub use robot_operator_types::robot::*;\npub use robot_operator_types::robot::Request;\n\n";
    assert!(operator.contains(exports), "{operator}");
}

#[test]
fn a_project_that_cannot_be_separated_is_refused() {
    let refused = |text: &str, expected: &str| {
        let error = apply(&with(text)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.ends_with("(nothing was changed)"), "{error}");
    };
    refused(
        "impl Robot {\n    pub fn wait(&self) -> Action {\n        Action::await_change()\n    }\n}\n",
        "src/robot.rs:91: a kind needs this, which uses `Action` of the controllers: ",
    );
    refused(
        "impl Robot {\n    fn label(&self) -> String {\n        String::new()\n    }\n}\n\npub fn text(robot: &Robot) -> String {\n    robot.label()\n}\n",
        "src/robot.rs:91: `label` is private, moves to the crate with the kinds, and is used in src/robot.rs:97: make it `pub`",
    );
    let mut tree = project();
    let root = tree.get("src/lib.rs").unwrap().to_owned();
    let foreign =
        "\nimpl Default for Robot {\n    fn default() -> Self {\n        robot()\n    }\n}\n";
    tree.insert("src/lib.rs", format!("{root}{foreign}"));
    let error = apply(&tree).unwrap_err().to_string();
    let expected = "this implements something for Robot, which only the crate with the kinds can do: move it to the file of Robot";
    assert!(
        error.starts_with("src/lib.rs:") && error.contains(expected),
        "{error}"
    );

    let mut tree = project();
    tree.insert("types/Cargo.toml", "[package]\nname = \"other\"\n");
    let error = apply(&tree).unwrap_err().to_string();
    assert!(
        error.starts_with("types/Cargo.toml:1: this is not the manifest of"),
        "{error}"
    );
    let mut tree = project();
    tree.insert("types/src/robot.rs", "");
    let error = apply(&tree).unwrap_err().to_string();
    assert!(
        error.starts_with("types/src/robot.rs:1: this file exists"),
        "{error}"
    );
}

#[test]
fn dependencies_of_the_kinds_are_copied() {
    let mut tree = with(
        "impl RobotSpec {\n    /// Returns the time.\n    pub fn time(&self) -> jiff::Timestamp {\n        jiff::Timestamp::now()\n    }\n}\n",
    );
    let manifest = tree.get("Cargo.toml").unwrap().to_owned();
    let new = manifest.replace("[dependencies]\n", "[dependencies]\njiff = \"0.2\"\n");
    tree.insert("Cargo.toml", &new);
    let moved = after(&tree, apply(&tree));
    let types = moved.get("types/Cargo.toml").unwrap();
    assert!(
        types.contains("opkit = { version = \"0.1\" }\njiff = \"0.2\"\n\n#"),
        "{types}"
    );
    tree.insert(
        "Cargo.toml",
        new.replace("jiff = \"0.2\"", "jiff = { path = \"../jiff\" }"),
    );
    let error = apply(&tree).unwrap_err().to_string();
    assert!(
        error.contains("a kind needs `jiff`, a dependency with a path"),
        "{error}"
    );
}

#[test]
fn a_project_in_a_workspace_does_not_become_one() {
    let command = AddTypesCrate {
        is_in_workspace: true,
    };
    let tree = after(&project(), command.apply(&project()));
    assert!(!tree.get("Cargo.toml").unwrap().contains("[workspace]"));
}

#[test]
fn other_commands_find_the_kinds_in_their_crate() {
    let tree = after(&project(), apply(&project()));
    // A version is beside the kind, functions are in the operator.
    let version = AddVersion {
        kind: "Robot".into(),
        version: "v1".into(),
    };
    let tree = after(&tree, version.apply(&tree));
    assert!(tree.get("types/src/robot/v1alpha1.rs").is_some());
    let mut webhook = AddWebhook::new("Robot");
    webhook.defaulting = true;
    let tree = after(&tree, webhook.apply(&tree));
    assert!(robot(&tree).1.contains("fn set_defaults("));
    let mut controller = AddController::new("Robot");
    controller.name = Some("scaler".into());
    let tree = after(&tree, controller.apply(&tree));
    assert!(robot(&tree).1.contains("pub fn scaler()"));
    // A new kind is in the operator until the command runs again.
    let tree = after(&tree, api("Arm").apply(&tree));
    let tree = after(&tree, apply(&tree));
    assert!(tree.get("types/src/arm.rs").is_some());
    let mut controller = AddController::new("Arm");
    controller.name = Some("mover".into());
    let tree = after(&tree, controller.apply(&tree));
    golden::check_format(&tree);
    let tree = after(&tree, RemoveApi { kind: "Arm".into() }.apply(&tree));
    let left: Vec<&str> = tree.files().map(|(path, _)| path).collect();
    assert!(!left.iter().any(|path| path.contains("arm")), "{left:?}");
    assert!(!tree.get("types/src/lib.rs").unwrap().contains("arm"));
    golden::check_format(&tree);
}

#[test]
fn an_upgrade_changes_both_manifests() {
    let tree = after(&project(), apply(&project()));
    let upgrade = Upgrade {
        version: "0.2.0".into(),
        to: Some(Dependency::Path("../opkit/crates/opkit".into())),
        locked: None,
    };
    let tree = after(&tree, upgrade.apply(&tree));
    let types = tree.get("types/Cargo.toml").unwrap();
    let expected = "opkit = { path = \"../../opkit/crates/opkit\" }\n";
    assert!(types.contains(expected), "{types}");
}
