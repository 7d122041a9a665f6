//! `opkit import` as a process.

use super::*;

/// The project of the unit tests of the library.
fn shop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scaffold/src/import/shop")
}

/// Runs the command in a directory, and returns its exit code, standard output and standard error.
fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = opkit(directory)
        .arg("import")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap();
    (code, text(&output.stdout), text(&output.stderr))
}

/// Copies the project to a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => fs::write(target, fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}

#[test]
fn a_project_is_created_in_the_current_directory() {
    let parent = TempDir::new().unwrap();
    let shop = shop();
    let shop = shop.to_str().unwrap();
    let (code, diff, errors) = run(parent.path(), &[shop, "--dry-run"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(diff.contains("+++ b/src/shop.rs\n"), "{diff}");
    assert!(fs::read_dir(parent.path()).unwrap().next().is_none());

    let (code, out, errors) = run(parent.path(), &[shop]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        out.starts_with("imported shop-operator: 13 files, "),
        "{out}"
    );
    let line = "   port    src/shop.rs: reconcile, from internal/controller/shop_controller.go:15 with openAt\n";
    assert!(out.contains(line), "{out}");
    assert!(
        out.ends_with("   next    cd shop-operator && cargo test\n"),
        "{out}"
    );
    let created = parent.path().join("shop-operator");
    let manifest = fs::read_to_string(created.join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("crates/opkit\", features = [\"v1_36\"]"),
        "{manifest}"
    );
    assert!(created.join("Cargo.lock").exists());

    let (code, out, errors) = run(parent.path(), &[shop]);
    assert_eq!((code, out.as_str()), (1, ""));
    let expected = "opkit: shop-operator is not empty: choose another directory with --out (nothing was changed)\n";
    assert_eq!(errors, expected);
}

#[test]
fn a_project_is_created_beside_the_one_that_it_is_imported_from() {
    let parent = TempDir::new().unwrap();
    let go = parent.path().join("shop-operator");
    copy(&shop(), &go);
    let arguments = [".", "--opkit", "version=0.1", "--output", "json"];
    let (code, out, errors) = run(&go, &arguments);
    assert_eq!((code, errors.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["created"].as_array().unwrap().len(), 13);
    assert_eq!(json["next"], "cd ../shop-operator-opkit && cargo test");
    assert!(json["port"].as_array().unwrap().len() > 5, "{out}");
    assert!(
        parent
            .path()
            .join("shop-operator-opkit/src/shop/v1alpha1.rs")
            .exists()
    );
    assert!(!go.join("Cargo.toml").exists());

    // From above, the directory with the name of the project is the Go project.
    fs::remove_dir_all(parent.path().join("shop-operator-opkit")).unwrap();
    let (code, out, _) = run(parent.path(), &["shop-operator", "--opkit", "version=0.1"]);
    assert_eq!(code, 0);
    assert!(
        out.ends_with("   next    cd shop-operator-opkit && cargo test\n"),
        "{out}"
    );

    let (code, out, _) = run(&go, &[".", "--out", "rust", "--opkit", "version=0.1"]);
    assert_eq!(code, 0);
    assert!(out.ends_with("   next    cd rust && cargo test\n"), "{out}");
    assert!(go.join("rust/src/lib.rs").exists());
}

#[test]
fn what_cannot_be_imported_is_refused_in_one_sentence() {
    let parent = TempDir::new().unwrap();
    let check = |files: &[(&str, &str)], words: &[&str]| {
        let go = parent.path().join("go");
        let _ = fs::remove_dir_all(&go);
        fs::create_dir(&go).unwrap();
        for (path, text) in files {
            let path = go.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut import = opkit(parent.path());
        refused(&import.args(["import", "go"]).output().unwrap(), words);
        assert!(!parent.path().join("a-operator").exists());
    };
    check(
        &[],
        &["go/PROJECT: ", "not the directory of a kubebuilder project"],
    );
    check(
        &[("PROJECT", "version: \"2\"\n")],
        &["PROJECT: ", "\"2\"", "only \"3\""],
    );
    check(
        &[("PROJECT", "a: [")],
        &["PROJECT: this is not valid YAML: "],
    );
    let project =
        "version: \"3\"\nprojectName: a-operator\nresources:\n- {api: {}, group: a, kind: B}\n";
    check(
        &[("PROJECT", project)],
        &["config/crd/bases: ", "`make manifests`"],
    );

    let (code, _, errors) = run(parent.path(), &[]);
    assert_eq!(code, 2, "{errors}");
    let shop = shop();
    let (code, _, errors) = run(
        parent.path(),
        &[shop.to_str().unwrap(), "--opkit", "nowhere"],
    );
    assert_eq!(code, 2);
    assert!(
        errors.contains("path=DIRECTORY, git=URL or version=VERSION"),
        "{errors}"
    );
}
