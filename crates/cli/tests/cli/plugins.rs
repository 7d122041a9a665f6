//! Plugins: programs `opkit-NAME` on the PATH.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// Creates a directory with a plugin `opkit-report`.
fn plugin(script: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("opkit-report");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Runs `opkit` with a directory before those of the PATH.
fn run(here: &Path, plugins: &Path, arguments: &[&str]) -> Output {
    let mut directories = vec![plugins.to_owned()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    directories.extend(std::env::split_paths(&path));
    let path = std::env::join_paths(directories).unwrap();
    let mut command = opkit(here);
    command.args(arguments).env("PATH", path).output().unwrap()
}

#[test]
fn a_plugin_gets_its_arguments_and_its_exit_code_is_returned() {
    let plugins = plugin("echo \"$# $1 $2\"; wc -c; exit 7");
    let here = TempDir::new().unwrap();
    let output = run(here.path(), plugins.path(), &["report", "--deep", "a b"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    // Without an operator in the directory, the input is empty.
    assert_eq!(stdout.replace(' ', ""), "2--deepab\n0\n");
}

#[test]
fn a_plugin_reads_the_model_of_the_operator() {
    let plugins = plugin("cat; test -x \"$OPKIT\"");
    let model = r#"{"apiVersion": "model.opkit.dev/v1", "operator": "op", "version": "0.0.0", "namespace": "op-system", "objects": []}"#;
    let root = workspace(&format!("fn main() {{ print!(\"{{}}\", r#\"{model}\"#) }}"));
    let output = run(root.path(), plugins.path(), &["report"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(read["operator"], "op");
}

#[test]
fn plugins_are_listed() {
    let plugins = plugin("exit 0");
    let here = TempDir::new().unwrap();
    let output = run(
        here.path(),
        plugins.path(),
        &["plugins", "--output", "json"],
    );
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = plugins.path().join("opkit-report");
    let expected = serde_json::json!({"name": "report", "path": path, "hidden": false});
    let listed = listed["plugins"].as_array().unwrap();
    assert!(listed.contains(&expected), "{listed:?}");
    // A command of opkit is never replaced, and a typing error is still found.
    let output = run(here.path(), plugins.path(), &["reprot"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unrecognized subcommand 'reprot'"));
}
