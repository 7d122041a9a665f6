//! Forms of a project that commands refuse.

use super::{check_all_refused, check_refused, project};
use crate::AddApi;

const HEAD: &str = "pub mod robot;\nuse opkit::prelude::*;\nuse robot::Robot;\n";

/// Checks that a crate root with this text after its imports is refused by every command.
fn root(text: &str, expected: &str) {
    check_all_refused(&[("src/lib.rs", &format!("{HEAD}{text}"))], expected);
}

/// Checks that a name in a crate root is refused.
fn taken(text: &str, expected: &str) {
    check_refused(&[("src/lib.rs", &format!("{HEAD}{text}"))], expected);
}

#[test]
fn a_macro_builds_the_operator() {
    root(
        "pub fn operator() -> Operator {\n    build! { Operator::new(\"r\").crd::<Robot>() }\n}\n",
        "src/lib.rs:4: operator() is built inside a macro, where opkit does not edit: add `.crd::<Arm>()` there (nothing was changed)",
    );
}

#[test]
fn a_controller_in_a_macro_or_behind_a_function() {
    root(
        "pub fn operator() -> Operator {\n    build! { Operator::new(\"r\").crd::<Robot>().controller(robot::controller()) }\n}\n",
        "src/lib.rs:4: operator() is built inside a macro",
    );
    root(
        "pub fn operator() -> Operator {\n    with(Operator::new(\"r\").crd::<Robot>(), robot::controller)\n}\n",
        "src/lib.rs:4: operator() ",
    );
}

#[test]
fn a_macro_defines_the_function() {
    root(
        "operator! {\n    pub fn operator() -> Operator {\n        Operator::new(\"r\")\n    }\n}\n",
        "src/lib.rs:1: there is no `fn operator() -> Operator`",
    );
}

#[test]
fn early_returns_and_branches() {
    root(
        "pub fn operator() -> Operator {\n    if cfg!(x) {\n        return Operator::new(\"x\");\n    }\n    Operator::new(\"r\").crd::<Robot>()\n}\n",
        "src/lib.rs:4: operator() builds operators in several places",
    );
    root(
        "pub fn operator() -> Operator {\n    let base = Operator::new(\"r\");\n    if cfg!(x) {\n        return base;\n    }\n    base.crd::<Robot>()\n}\n",
        "src/lib.rs:4: operator() returns in several places",
    );
    root(
        "pub fn operator() -> Operator {\n    match 1 {\n        1 => Operator::new(\"r\").crd::<Robot>(),\n        _ => Operator::new(\"x\"),\n    }\n}\n",
        "src/lib.rs:4: operator() builds operators in several places",
    );
}

#[test]
fn no_chain() {
    root(
        "pub fn operator() -> Operator {\n    build(Robot::default())\n}\n",
        "src/lib.rs:4: operator() is not one chain of methods of `Operator`",
    );
    root(
        "pub fn operator() -> Operator {\n    #[cfg(x)]\n    let operator = Operator::new(\"r\").crd::<Robot>();\n    operator\n}\n",
        "src/lib.rs:4: operator() is not one chain of methods of `Operator`",
    );
}

#[test]
fn no_function() {
    root(
        "pub fn run() {}\n",
        "src/lib.rs:1: there is no `fn operator() -> Operator`",
    );
    root(
        "pub fn operator(name: &str) -> Operator {\n    Operator::new(name)\n}\n",
        "src/lib.rs:1: there is no `fn operator() -> Operator`",
    );
}

#[test]
fn files_that_are_not_rust() {
    root("pub fn operator() -> Operator {\n", "src/lib.rs:");
    check_all_refused(
        &[(
            "src/lib.rs",
            "\u{feff}pub mod robot;\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n}\n",
        )],
        "src/lib.rs:1: opkit does not edit a file with a byte order mark",
    );
}

#[test]
fn names_that_are_taken() {
    let operator = "pub fn operator() -> Operator {\n    Operator::new(\"r\").crd::<Robot>()\n}\n";
    taken(
        &format!("{operator}pub struct Arm;\n"),
        "src/lib.rs:7: `Arm` is the name of something else here",
    );
    taken(
        &format!("use other::Arm;\n{operator}"),
        "src/lib.rs:4: `Arm` is the name of something else here",
    );
    taken(
        &format!("use other::Leg as Arm;\n{operator}"),
        "src/lib.rs:4: `Arm` is the name of something else here",
    );
    taken(
        &format!("{operator}mod arm {{}}\n"),
        "src/lib.rs:7: there is a module `arm` already",
    );
    check_refused(
        &[("src/arm.rs", "")],
        "src/arm.rs:1: this file exists, but does not define the kind",
    );
    check_refused(&[("tests/arm.rs", "")], "tests/arm.rs:1: this file exists");
    check_refused(
        &[("config/samples/arm.yaml", "")],
        "config/samples/arm.yaml:1: this file exists",
    );
}

#[test]
fn several_functions_outside_of_the_root() {
    let operator =
        "use opkit::prelude::*;\npub fn operator() -> Operator {\n    Operator::new(\"r\")\n}\n";
    check_all_refused(
        &[
            ("src/lib.rs", "pub mod a;\npub mod b;\n"),
            ("src/a.rs", operator),
            ("src/b.rs", operator),
        ],
        "src/lib.rs:1: there are several functions `operator()`, in src/a.rs and src/b.rs",
    );
}

#[test]
fn a_kind_that_exists_otherwise() {
    let kind = |version: &str| {
        format!(
            "#[opkit::kind(group = \"robot.my.domain\", version = \"{version}\", namespaced)]\npub struct ArmSpec {{}}\n"
        )
    };
    let (present, mut api) = (project(&[("src/arm.rs", &kind("v1"))]), AddApi::new("Arm"));
    let error = |api: &AddApi| api.apply(&present).unwrap_err().to_string();
    assert!(
        error(&api).starts_with("src/arm.rs:1: the kind Arm exists without a controller"),
        "{}",
        error(&api)
    );
    api.version = Some("v2".into());
    assert!(error(&api).starts_with(
        "src/arm.rs:1: the kind Arm exists in the version v1: `opkit add version v2 --kind Arm`"
    ));
    api.group = Some("other".into());
    assert!(
        error(&api).starts_with("src/arm.rs:1: the kind Arm exists in the group robot.my.domain")
    );
}

#[test]
fn projects_that_are_no_operators() {
    let tree = crate::Tree::default();
    let error = AddApi::new("Arm").apply(&tree).unwrap_err().to_string();
    assert!(
        error.starts_with("Cargo.toml:1: there is no [package] with a name"),
        "{error}"
    );
    let mut tree = project(&[]);
    tree.remove("src/lib.rs");
    let error = AddApi::new("Arm").apply(&tree).unwrap_err().to_string();
    assert!(error.starts_with("there is no src/lib.rs"), "{error}");
}
