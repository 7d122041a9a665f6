//! `opkit new`, `init`, `add`, `edit` and `remove` as processes.

use super::*;

/// Runs the command in a directory, and returns its exit code, standard output and standard error.
fn run(directory: &Path, arguments: &str) -> (i32, String, String) {
    let arguments = arguments.split(' ').filter(|it| !it.is_empty());
    let output = opkit(directory).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

/// Creates a project, and returns its parent directory.
pub(super) fn project() -> TempDir {
    let parent = TempDir::new().unwrap();
    let (code, out, errors) = run(parent.path(), "new robot-operator --domain example.com");
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        out.starts_with("created robot-operator: 8 files, "),
        "{out}"
    );
    assert!(
        out.ends_with("   next    cd robot-operator && opkit dev\n"),
        "{out}"
    );
    parent
}

fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => {
                    let path = path.strip_prefix(directory).unwrap();
                    found.push(path.to_string_lossy().into_owned());
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_new_project_depends_on_this_checkout_with_its_lock_file() {
    let parent = project();
    let directory = parent.path().join("robot-operator");
    let expected = [
        ".gitignore",
        "Cargo.lock",
        "Cargo.toml",
        "README.md",
        "config/samples/robot.yaml",
        "src/lib.rs",
        "src/main.rs",
        "src/robot.rs",
        "tests/robot.rs",
    ];
    assert_eq!(files(&directory), expected);
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("crates/opkit\", features = [\"v1_36\"]"),
        "{manifest}"
    );
    assert!(!manifest.contains("[workspace]"));
    let (code, _, errors) = run(parent.path(), "new robot-operator");
    assert_eq!(code, 1);
    assert!(errors.contains("robot-operator is not empty"), "{errors}");
}

#[test]
fn a_project_below_a_workspace_is_a_workspace_of_its_own() {
    let parent = TempDir::new().unwrap();
    fs::write(
        parent.path().join("Cargo.toml"),
        "[workspace]\nmembers = []\n",
    )
    .unwrap();
    let (code, out, _) = run(
        parent.path(),
        "new a-operator --opkit version=0.1 --output json",
    );
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["created"].as_array().unwrap().len(), 8);
    assert_eq!(json["next"], "cd a-operator && opkit dev");
    let manifest = parent.path().join("a-operator/Cargo.toml");
    assert!(
        fs::read_to_string(manifest)
            .unwrap()
            .ends_with("\n[workspace]\n")
    );
}

#[test]
fn init_keeps_the_files_of_a_repository() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("robot-operator");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("README.md"), "mine\n").unwrap();
    let (code, out, errors) = run(&directory, "init --license apache2");
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(out.starts_with("created robot-operator: 7 files"), "{out}");
    assert_eq!(
        fs::read_to_string(directory.join("README.md")).unwrap(),
        "mine\n"
    );
    assert!(directory.join("LICENSE").exists());
    let (code, _, errors) = run(&directory, "init");
    assert_eq!(code, 1);
    assert!(errors.contains("there is a Cargo.toml here"), "{errors}");
}

#[test]
fn commands_change_the_project_around_the_current_directory_once() {
    let parent = project();
    let directory = parent.path().join("robot-operator");
    let (sources, lib) = (directory.join("src"), directory.join("src/lib.rs"));
    let before = fs::read_to_string(&lib).unwrap();
    let (code, diff, _) = run(&sources, "add api --kind Arm --dry-run");
    assert_eq!(code, 0);
    assert!(diff.contains("\n+        .crd::<Arm>()\n"), "{diff}");
    assert_eq!(fs::read_to_string(&lib).unwrap(), before);

    let (code, out, _) = run(&sources, "add api --kind Arm");
    assert_eq!(code, 0);
    assert!(
        out.starts_with("+ config/samples/arm.yaml (7 lines)\n+ src/arm.rs"),
        "{out}"
    );
    assert_eq!(
        run(&sources, "add api --kind Arm"),
        (0, "nothing to do\n".into(), String::new())
    );
    assert_eq!(run(&sources, "add api --kind Arm --dry-run").1, "");

    // Without a terminal, files are not deleted without a word.
    let (code, _, errors) = run(&directory, "remove api --kind Arm");
    assert_eq!(code, 1);
    assert!(
        errors.contains("add --yes (nothing was changed)"),
        "{errors}"
    );
    let (code, out, _) = run(&directory, "remove api --kind Arm --yes --output json");
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["deleted"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read_to_string(&lib).unwrap(), before);
}

#[test]
fn wrong_usage_exits_with_2_and_a_failure_with_1() {
    let parent = project();
    let directory = parent.path().join("robot-operator");
    for wrong in [
        "new Robot",
        "new",
        "add",
        "add api",
        "add api --kind robot",
        "add webhook --kind Robot",
        "add version 1 --kind Robot",
        "edit",
        "edit storage v9 --kind Robot",
        "add controller --kind Nothing",
        "new x --license mit",
        "remove version v1alpha1 --kind Robot",
        "new a --opkit main",
    ] {
        let (code, out, errors) = run(&directory, wrong);
        assert_eq!((code, out.as_str()), (2, ""), "{wrong}: {errors}");
        assert!(!errors.is_empty());
    }
    let (code, _, errors) = run(parent.path(), "add api --kind Arm");
    assert_eq!(code, 1);
    assert!(
        errors.contains("there is no Cargo.toml with a [package]"),
        "{errors}"
    );
    fs::write(directory.join("src/lib.rs"), "fn (").unwrap();
    let (code, _, errors) = run(&directory, "add api --kind Arm");
    assert_eq!((code, errors.lines().count()), (1, 1), "{errors}");
    assert!(
        errors.starts_with("opkit: src/lib.rs:1: this is not valid Rust"),
        "{errors}"
    );
}

#[test]
fn files_around_a_project_are_added_once_and_removed() {
    let parent = project();
    let directory = parent.path().join("robot-operator");
    let before = files(&directory);
    for (what, first) in [
        ("ci", ".github/workflows/ci.yaml"),
        ("dockerfile", ".dockerignore"),
        ("devcontainer", ".devcontainer/devcontainer.json"),
    ] {
        let (code, diff, _) = run(&directory, &format!("add {what} --dry-run"));
        assert_eq!(code, 0);
        assert!(diff.contains(&format!("+++ b/{first}\n")), "{diff}");
        assert!(!directory.join(first).exists());

        let (code, out, errors) = run(&directory, &format!("add {what}"));
        assert_eq!(code, 0, "{errors}");
        assert!(out.starts_with(&format!("+ {first} (")), "{out}");
        let text = fs::read_to_string(directory.join(first)).unwrap();
        fs::write(directory.join(first), format!("{text}\n")).unwrap();
        let again = run(&directory, &format!("add {what}"));
        assert_eq!(again, (0, "nothing to do\n".into(), String::new()));
        let (_, out, _) = run(&directory, &format!("add {what} --force --output json"));
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json["changed"][0], first, "{out}");

        assert_eq!(run(&directory, &format!("remove {what}")).0, 1);
        let (code, out, _) = run(&directory, &format!("remove {what} --yes"));
        assert_eq!(code, 0);
        assert!(out.starts_with(&format!("- {first}\n")), "{out}");
        assert_eq!(files(&directory), before);
    }
    assert!(!directory.join(".github").exists());
    assert_eq!(run(&directory, "add ci --manifests -x").0, 2);
}

#[test]
fn the_kinds_move_to_a_crate_of_their_own() {
    let parent = project();
    let directory = parent.path().join("robot-operator");
    let before = files(&directory);
    let (code, diff, _) = run(&directory.join("src"), "add types-crate --dry-run");
    assert_eq!(code, 0);
    assert!(
        diff.contains("\n+pub use robot_operator_types::robot::*;\n"),
        "{diff}"
    );
    assert_eq!(files(&directory), before);

    let (code, out, errors) = run(&directory, "add types-crate");
    assert_eq!((code, errors.as_str()), (0, ""));
    let expected = "+ types/Cargo.toml (12 lines)\n+ types/src/lib.rs (3 lines)\n+ types/src/robot.rs (26 lines)\n  next: cargo check --workspace; another operator depends on robot-operator-types and uses robot_operator_types::robot::Robot\n";
    assert!(out.ends_with(expected), "{out}");
    let nothing = (0, "nothing to do\n".to_owned(), String::new());
    assert_eq!(run(&directory, "add types-crate"), nothing);

    // A kind that is added later moves too.
    assert_eq!(run(&directory.join("types/src"), "add api --kind Arm").0, 0);
    assert!(directory.join("src/arm.rs").exists());
    let (code, out, _) = run(&directory, "add types-crate --output json");
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["created"], serde_json::json!(["types/src/arm.rs"]));
    let changed = ["src/arm.rs", "types/src/lib.rs"];
    assert_eq!(json["changed"], serde_json::json!(changed));

    let (code, _, errors) = run(&directory, "remove types-crate");
    assert_eq!(code, 1);
    assert!(errors.contains("revert the commit"), "{errors}");

    // A package in a workspace becomes no workspace of its own.
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("robot-operator");
    assert_eq!(run(parent.path(), "new robot-operator").0, 0);
    fs::write(parent.path().join("Cargo.toml"), "[workspace]\n").unwrap();
    assert_eq!(run(&directory, "add types-crate").0, 0);
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("[workspace]"), "{manifest}");
}

#[test]
fn a_project_moves_to_another_source_of_opkit() {
    let parent = project();
    let directory = parent.path().join("robot-operator");
    assert_eq!(run(&directory, "add ci").0, 0);
    // The checkout is the version.
    assert_eq!(
        run(&directory, "upgrade"),
        (0, "nothing to do\n".into(), String::new())
    );

    let before = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    let (code, diff, _) = run(&directory, "upgrade --opkit version=0.1 --dry-run");
    assert_eq!(code, 0);
    let line = "+opkit = { version = \"0.1\", features = [\"v1_36\"] }\n";
    assert!(diff.contains(line), "{diff}");
    assert_eq!(
        fs::read_to_string(directory.join("Cargo.toml")).unwrap(),
        before
    );

    let (code, out, errors) = run(&directory, "upgrade --opkit version=0.1");
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        out.contains("cargo install --locked opkit-cli --version 0.1\n"),
        "{out}"
    );
    assert!(
        out.contains("  next: cargo update -p opkit && cargo test\n"),
        "{out}"
    );
    let (_, out, _) = run(&directory, "upgrade --output json");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["changed"], serde_json::json!([]));

    // A version that the requirement allows is only in the lock file.
    let lock = "version = 4\n\n[[package]]\nname = \"opkit\"\nversion = \"0.0.9\"\n";
    fs::write(directory.join("Cargo.lock"), lock).unwrap();
    let (code, out, _) = run(&directory, "upgrade");
    assert_eq!(code, 0);
    assert!(out.starts_with("no file changes\n  by hand: **"), "{out}");
    let next = "  next: cargo update -p opkit && cargo test; the breaking changes since 0.0.9 are listed above\n";
    assert!(out.ends_with(next), "{out}");
    let (_, out, _) = run(&directory, "upgrade --output json");
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(result["byHand"][0].as_str().unwrap().starts_with("**"));

    let (code, _, errors) = run(&directory, "upgrade --opkit nowhere");
    assert_eq!(code, 2);
    assert!(
        errors.contains("path=DIRECTORY, git=URL or version=VERSION"),
        "{errors}"
    );
    let inherited = before.replace(
        "[dev-dependencies]\nopkit = {",
        "[dev-dependencies]\nopkit = { workspace = true,",
    );
    fs::write(directory.join("Cargo.toml"), inherited).unwrap();
    let (code, _, errors) = run(&directory, "upgrade --opkit version=0.1");
    assert_eq!(code, 1);
    assert!(
        errors.contains("change it in the Cargo.toml of the workspace"),
        "{errors}"
    );
}
