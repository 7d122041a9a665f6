use super::modules::FOLDERS;
use super::{File, Model, Package, check, read};

fn file(path: &str, text: &str) -> File {
    File {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

fn package(name: &str, dependencies: &[&str]) -> Package {
    let folder = name.strip_prefix("opkit-").unwrap_or(name);
    Package {
        name: name.to_owned(),
        manifest: format!("crates/{folder}/Cargo.toml"),
        dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
    }
}

/// Returns the violations of `model`, without those of an empty repository, which lacks its data
/// files.
fn found(model: &Model) -> Vec<String> {
    let empty = check(&Model::default());
    let violations = check(model)
        .into_iter()
        .filter(|violation| !empty.contains(violation));
    violations.map(|violation| violation.to_string()).collect()
}

fn check_packages(packages: &[Package], expected: &[&str]) {
    assert_eq!(
        found(&Model {
            packages: packages.to_vec(),
            files: Vec::new()
        }),
        expected
    );
}

fn check_file(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(
        found(&Model {
            packages: Vec::new(),
            files: vec![file(path, text)]
        }),
        expected
    );
}

#[test]
fn this_repository_is_tidy() {
    let model = read().unwrap();
    assert!(
        model
            .packages
            .iter()
            .any(|package| package.name == "opkit-apiserver")
    );
    let violations: Vec<String> = check(&model).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// The real workspace with one edge more must fail.
#[test]
fn a_wrong_direction_fails() {
    let wrong = |from: &str, to: &str| {
        let mut model = read().unwrap();
        for package in model
            .packages
            .iter_mut()
            .filter(|package| package.name == from)
        {
            package.dependencies.push(to.to_owned());
        }
        let violations = check(&model);
        let what: Vec<&str> = violations
            .iter()
            .map(|violation| violation.what.as_str())
            .collect();
        assert_eq!(what, [format!("{from} may not depend on {to}")]);
    };
    wrong("opkit-apiserver", "opkit-cache");
    wrong("opkit-apiserver", "opkit-client");
    wrong("opkit-cache", "opkit-apiserver");
    wrong("opkit-controller", "opkit-apiserver");
    wrong("opkit-operator", "opkit-envtest");
    wrong("opkit-client", "opkit-cache");
    wrong("opkit-workqueue", "opkit-apimachinery");
    wrong("opkit-derive", "opkit-apimachinery");
}

#[test]
fn edges_downwards_are_fine() {
    check_packages(
        &[
            package(
                "opkit-operator",
                &["opkit-cache", "opkit-client", "opkit-apimachinery"],
            ),
            package("opkit-envtest", &["opkit-apiserver", "opkit-controller"]),
            package("opkit", &["opkit-envtest"]),
        ],
        &[],
    );
    check_packages(
        &[package("opkit-kitchen", &[])],
        &[
            "crates/kitchen/Cargo.toml:1: opkit-kitchen is not in the table of crates in \
           xtask/src/tidy/crates.rs",
        ],
    );
    check_packages(
        &[package("opkit-client", &["xtask"])],
        &["crates/client/Cargo.toml:1: opkit-client may not depend on xtask"],
    );
}

#[test]
fn modules_begin_with_a_doc_and_end_in_time() {
    check_file("crates/a/src/b.rs", "//! Doc.\n", &[]);
    check_file(
        "crates/a/src/b.rs",
        "use std::fmt;\n",
        &["crates/a/src/b.rs:1: a module starts with a //! description"],
    );
    check_file("crates/a/src/b/tests.rs", "use std::fmt;\n", &[]);
    check_file("crates/a/src/b/tests/c.rs", "use std::fmt;\n", &[]);
    check_file(
        "tests/conformance/src/pods.rs",
        "use std::fmt;\n",
        &["tests/conformance/src/pods.rs:1: a module starts with a //! description"],
    );
    let long = format!("//! Doc.\n{}", "\n".repeat(1_000));
    check_file(
        "crates/a/src/b.rs",
        &long,
        &["crates/a/src/b.rs:1001: 1001 lines are more than 1000"],
    );
}

#[test]
fn folders_of_the_controller_use_those_below_them() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let path = format!("crates/controller/src/{path}");
        let expected: Vec<_> = expected
            .iter()
            .map(|what| format!("{path}:{what}"))
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_file(&path, &format!("//! Doc.\n{text}"), &expected);
    };
    check("lib.rs", "mod worker;\npub use worker::Worker;\n", &[]);
    check("manager/mod.rs", "use crate::worker::Worker;\n", &[]);
    check("context/apply.rs", "use crate::context::Context;\n", &[]);
    check("context/apply.rs", "use super::Context;\n", &[]);
    check(
        "context/apply.rs",
        "/// See [`run`](crate::Manager::run).\n",
        &[],
    );
    check(
        "manager/tests/start.rs",
        "use crate::{Action, Context};\n",
        &[],
    );
    let below = |folder: &str, used: &str, what: &str| {
        let text = format!("use crate::{used}::Thing;\n");
        check(&format!("{folder}/thing.rs"), &text, &[what]);
        // In the middle of code as well.
        let text = format!("fn thing() -> crate::{used}::Thing {{}}\n");
        check(&format!("{folder}/thing.rs"), &text, &[what]);
    };
    below("source", "worker", "2: source may not use worker");
    below("source", "manager", "2: source may not use manager");
    below("context", "source", "2: context may not use source");
    below("context", "manager", "2: context may not use manager");
    below("worker", "manager", "2: worker may not use manager");
    below("object", "context", "2: object may not use context");
    let root = "name the folder: write crate::<folder>::<item>, one use per module";
    check(
        "worker/a.rs",
        "use crate::Manager;\n",
        &[&format!("2: {root}")],
    );
    check(
        "worker/a.rs",
        "use crate::{manager::B, object::C};\n",
        &[
            &format!("2: {root}"),
            "2: write one `use` for each module, without `::` in braces",
        ],
    );
    let root = "super:: leads to the root of the crate here: write crate::<folder>::<item>";
    check(
        "source/mod.rs",
        "use super::manager::B;\n",
        &[&format!("2: {root}")],
    );
    check(
        "source/a.rs",
        "use super::super::manager::B;\n",
        &[&format!("2: {root}")],
    );
    let flat = "1: move this file to a folder that names its place in the flow";
    check("worker.rs", "", &[flat]);
    let unknown = "1: kitchen is not in the table of xtask/src/tidy/modules.rs";
    check("kitchen/mod.rs", "", &[unknown]);
    check_file(
        "crates/cache/src/store.rs",
        "//! Doc.\nuse crate::Store;\n",
        &[],
    );
}

/// The table of folders has no cycle: each uses only folders that come after it.
#[test]
fn folders_of_the_controller_are_in_order() {
    let names: Vec<_> = FOLDERS.iter().map(|(name, _)| *name).collect();
    for (place, (name, used)) in FOLDERS.iter().enumerate() {
        for used in *used {
            let below = names.iter().position(|it| it == used);
            assert!(below.is_some_and(|below| below > place), "{name}: {used}");
        }
    }
}

#[test]
fn names_say_something() {
    check_file(
        "crates/a/src/utils.rs",
        "//! Doc.\n",
        &[
            "crates/a/src/utils.rs:1: \"utils.rs\" does not describe its content: name it after the content",
        ],
    );
    check_file(
        "docs/common/a.md",
        "",
        &[
            "docs/common/a.md:1: \"common\" does not describe its content: name it after the content",
        ],
    );
}

#[test]
fn what_is_left_to_do_has_an_issue() {
    let word = concat!("TO", "DO");
    let check = |line: &str, fails: bool| {
        let text = format!("//! Doc.\n{}\n", line.replace("LEFT", word));
        let expected = format!("a.rs:2: write {word}(#123) with the number of an issue");
        let expected = [expected.as_str()];
        check_file("a.rs", &text, if fails { &expected } else { &[] });
    };
    check("// LEFT: later", true);
    check("// LEFT(me): later", true);
    check("// LEFT(#): later", true);
    check("// LEFT(#12): later", false);
    check("// LEFT(#12) and LEFT", true);
    check("const LEFTS: u8 = 1;", false);
}

#[test]
fn manifests_are_sorted_and_have_no_versions() {
    let good = "[package]\nname = \"b\"\n\n[dependencies]\na.workspace = true\n\
                b = { workspace = true, optional = true }\n\n[dev-dependencies]\na.workspace = true\n";
    check_file("crates/a/Cargo.toml", good, &[]);
    check_file(
        "crates/a/Cargo.toml",
        "[dependencies]\nb.workspace = true\na.workspace = true\n",
        &["crates/a/Cargo.toml:3: a comes after b, but the table is sorted"],
    );
    check_file(
        "crates/a/Cargo.toml",
        "[dependencies]\na = \"1\"\n",
        &["crates/a/Cargo.toml:2: the version of a belongs in [workspace.dependencies]"],
    );
    check_file(
        "crates/a/Cargo.toml",
        "[dependencies.a]\nversion = \"1\"\n",
        &["crates/a/Cargo.toml:1: write [dependencies.a] on one line of its table"],
    );
    let blocks = "[workspace.dependencies]\n# Ours.\nz = \"1\"\n\n# Theirs.\na = \"1\"\n";
    check_file("Cargo.toml", blocks, &[]);
}

#[test]
fn data_files_must_be_there() {
    let missing: Vec<String> = check(&Model::default())
        .iter()
        .map(|violation| violation.path.clone())
        .collect();
    assert!(missing.contains(&"crates/apiserver/data/v1.36/kinds.json".to_owned()));
}

#[test]
fn comments_are_plain_and_at_most_100_columns_wide() {
    let wide = "x ".repeat(60);
    let text = format!(
        "//! A module.\n/// Tells somebody.\n// told\n/// {wide}\n/// ```\n/// {wide}\n/// ```\n\
         /// | {wide}|\nfn f() {{}}\n"
    );
    check_file(
        "crates/a/src/b.rs",
        &text,
        &[
            "crates/a/src/b.rs:2: \"somebody\" is not plain English: write \"another client\" or \
             similar",
            "crates/a/src/b.rs:2: \"tells\" is not plain English: write \"reports\" or similar",
            "crates/a/src/b.rs:4: a comment of 124 columns: wrap it at 100",
        ],
    );
}

#[test]
fn imports_are_in_three_blocks_and_one_for_each_module() {
    let nested = "crates/a/src/b.rs:3: write one `use` for each module, without `::` in braces";
    let order = "crates/a/src/b.rs:3: order imports: std, other crates, then crate, super and self";
    for (import, expected) in [
        ("use std::fmt;", &[][..]),
        ("use std::{fmt, fs::File};", &[nested]),
        ("use std::{\n    fmt,\n    fs::File,\n};", &[nested]),
        ("use serde::Serialize;\nuse crate::A;", &[]),
    ] {
        check_file(
            "crates/a/src/b.rs",
            &format!("//! B.\n\n{import}\n"),
            expected,
        );
    }
    let text = "//! B.\nuse crate::A;\nuse std::fmt;\n";
    check_file("crates/a/src/b.rs", text, &[order]);
    let text = "//! B.\nuse serde::A;\nuse std::fmt;\n";
    check_file("crates/a/src/b.rs", text, &[order]);
}
