//! Forms of kinds that commands edit.

use super::{after, project, run};
use crate::{AddVersion, EditStorage, RemoveVersion, Tree};

fn add(tree: &Tree, version: &str) -> Tree {
    let command = AddVersion {
        kind: "Robot".into(),
        version: version.into(),
    };
    let added = run(tree, &command.apply(tree));
    assert!(command.apply(&added).unwrap().changes.is_empty());
    added
}

/// Checks that a version is added to a kind, and that everything is as before when it is the stored
/// version and the old one is removed, except for the number of the version.
fn check(kind: &str, hub: &str, old: &str) {
    let before = project(&[("src/robot.rs", kind)]);
    let added = add(&before, "v1");
    let text = added.get("src/robot.rs").unwrap();
    assert!(text.contains(hub), "{hub}\nis not in\n{text}");
    let text = added.get("src/robot/v1alpha1.rs").unwrap();
    assert!(text.contains(old), "{old}\nis not in\n{text}");

    let remove = RemoveVersion {
        kind: "Robot".into(),
        version: "v1alpha1".into(),
    };
    let error = remove.apply(&added).unwrap_err().to_string();
    assert!(error.contains("are stored in this version"), "{error}");
    let storage = EditStorage {
        kind: "Robot".into(),
        version: "v1".into(),
    };
    let stored = run(&added, &storage.apply(&added));
    assert!(storage.apply(&stored).unwrap().changes.is_empty());
    let removed = run(&stored, &remove.apply(&stored));
    assert!(remove.apply(&removed).unwrap().changes.is_empty());
    let words = |text: &str| text.split_whitespace().collect::<String>();
    let expected = kind.replacen("version = \"v1alpha1\"", "version = \"v1\"", 1);
    assert_eq!(
        words(removed.get("src/robot.rs").unwrap()),
        words(&expected)
    );
    assert_eq!(removed.get("src/robot/v1alpha1.rs"), None);
}

#[test]
fn a_kind_with_nested_types_imports_and_comments() {
    check(
        "//! Robots.\n\nuse opkit::k8s_openapi::api::core::v1::{Container, Toleration as Tolerance};\nuse opkit::prelude::*;\n\n/// Default.\npub const REPLICAS: i32 = 1;\n\n/// A robot.\n#[opkit::kind(\n    group = \"robot.my.domain\", // the group\n    version = \"v1alpha1\",\n    namespaced,\n    status = RobotStatus,\n    shortname = \"rb\",\n)]\n#[opkit(category = \"fleet\", printcolumn(age))]\npub struct RobotSpec {\n    /// Image.\n    pub image: String, // the image\n    #[opkit(default = REPLICAS)]\n    pub replicas: i32,\n    pub tools: Vec<Tool>,\n    pub power: Power,\n    pub tolerance: Option<Tolerance>,\n    pub labels: BTreeMap<String, String>,\n}\n\n/// A tool.\n#[opkit::schema]\npub struct Tool {\n    pub size: Size,\n}\n\n#[opkit::schema]\npub enum Size { Small, Large }\n\n#[opkit::schema(union = \"type\")]\npub enum Power { Mains, Battery(Tool) }\n\n#[opkit::status]\npub struct RobotStatus {\n    pub conditions: Conditions,\n}\n\nfn container() -> Container {\n    Container::default()\n}\n",
        "    group = \"robot.my.domain\", // the group\n    version = \"v1\",\n    namespaced,\n    status = RobotStatus,\n    shortname = \"rb\",\n    versions(v1alpha1::Robot),\n    storage = \"v1alpha1\",\n)]",
        "//! The version `v1alpha1` of the kind `Robot`. It does not change any more.\n\nuse opkit::k8s_openapi::api::core::v1::Toleration as Tolerance;\nuse opkit::prelude::*;\nuse super::Power;\nuse super::REPLICAS;\n\n/// A robot.\n#[opkit::version(of = super::Robot, version = \"v1alpha1\")]\n#[opkit(printcolumn(age))]\npub struct RobotSpec {\n    /// Image.\n    pub image: String, // the image\n",
    );
}

#[test]
fn a_kind_on_one_line_without_a_status() {
    check(
        "#[opkit::kind(group = \"robot.my.domain\", version = \"v1alpha1\", namespaced)]\npub struct RobotSpec {}\n",
        "pub mod v1alpha1;\n\n#[opkit::kind(\n    group = \"robot.my.domain\",\n    version = \"v1\",\n    namespaced,\n    versions(v1alpha1::Robot),\n    storage = \"v1alpha1\"\n)]\n",
        "#[opkit::version(of = super::Robot, version = \"v1alpha1\")]\npub struct RobotSpec {}\n",
    );
}

#[test]
fn a_kind_with_a_name_of_its_own_and_windows_lines() {
    let text = "use opkit::kind;\r\n#[kind(kind = \"Robot\", group = \"robot.my.domain\", version = \"v1alpha1\", cluster)]\r\n#[derive(Default)]\r\nstruct Desired {\r\n    size: Option<i32>,\r\n}\r\n";
    check(
        text,
        "pub mod v1alpha1;\r\n\r\nuse opkit::kind;\r\n",
        "#[opkit::version(of = super::Robot, version = \"v1alpha1\", kind = \"Robot\")]\n#[derive(Default)]\nstruct Desired {\n",
    );
}

#[test]
fn a_third_version_keeps_the_stored_one() {
    let two = add(&project(&[]), "v1beta1");
    let three = add(&two, "v1");
    let text = three.get("src/robot.rs").unwrap();
    assert!(
        text.contains("pub mod v1alpha1;\npub mod v1beta1;\n"),
        "{text}"
    );
    assert!(text.contains("    version = \"v1\",\n"), "{text}");
    assert!(
        text.contains(
            "    versions(v1beta1::Robot, v1alpha1::Robot),\n    storage = \"v1alpha1\"\n"
        ),
        "{text}"
    );
    let sample = |name: &str| three.get(&format!("config/samples/{name}.yaml")).unwrap();
    assert!(sample("robot").starts_with("apiVersion: robot.my.domain/v1\n"));
    assert!(sample("robot-v1beta1").starts_with("apiVersion: robot.my.domain/v1beta1\n"));
    assert!(sample("robot-v1alpha1").starts_with("apiVersion: robot.my.domain/v1alpha1\n"));
}

#[test]
fn versions_that_cannot_be_added() {
    let check = |files: &[(&str, &str)], version: &str, expected: &str| {
        let command = AddVersion {
            kind: "Robot".into(),
            version: version.into(),
        };
        let tree = project(files);
        let error = command.apply(&tree).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[], "v1alpha0", "a version is v1, v1beta1");
    check(&[], "1", "a version is v1, v1beta1");
    check(
        &[("src/robot/v1alpha1.rs", "")],
        "v1",
        "src/robot/v1alpha1.rs:1: this file exists",
    );
    check(
        &[("src/robot.rs", "kinds! { pub struct RobotSpec {} }")],
        "v1",
        "types inside of macros are not found; there is none here",
    );
    check(
        &[("src/robot.rs", "struct {")],
        "v1",
        "src/robot.rs:1: this is not valid Rust",
    );
    check(
        &[(
            "src/robot.rs",
            "mod v1alpha1 {}\n#[opkit::kind(group = \"a.b\", version = \"v1alpha1\", namespaced)]\npub struct RobotSpec {}\n",
        )],
        "v1",
        "src/robot.rs:1: there is a module `v1alpha1` already",
    );
    check(
        &[(
            "src/robot.rs",
            "pub mod inner {\n    #[opkit::kind(group = \"a.b\", version = \"v1\", namespaced)]\n    pub struct RobotSpec {}\n}\n",
        )],
        "v2",
        "Robot is not in a file of its own",
    );
    let old =
        "#[opkit::kind(group = \"a.b\", version = \"v2\", namespaced)]\npub struct RobotSpec {}\n";
    check(&[("src/robot.rs", old)], "v1", "it is older than v2");
}

#[test]
fn a_kind_that_other_code_uses_is_not_removed() {
    let used = "//! Fleets.\n\n/// Counts.\npub fn count(robots: &[crate::robot::Robot]) -> usize {\n    robots.len()\n}\n";
    let tree = project(&[("src/fleet.rs", used)]);
    let command = crate::RemoveApi {
        kind: "Robot".into(),
    };
    let error = command.apply(&tree).unwrap_err().to_string();
    assert_eq!(
        error,
        "src/fleet.rs:4: `robot` is used here: change this first (nothing was changed)"
    );
    let tree = project(&[]);
    let removed = after(&tree, &command.apply(&tree).unwrap());
    let paths: Vec<_> = removed.files().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            ".gitignore",
            "Cargo.toml",
            "README.md",
            "src/lib.rs",
            "src/main.rs"
        ]
    );
    assert!(!removed.get("src/lib.rs").unwrap().contains("obot::"));
}
