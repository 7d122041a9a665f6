//! The manifests that the binary prints, compared with a reviewed file. `OPKIT_BLESS=1` writes it.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_manifests_are_as_reviewed() {
    let binary = env!("CARGO_BIN_EXE_robot-operator");
    let mut command = Command::new(binary);
    let output = command.arg("manifests").env_remove("WATCH_NAMESPACE");
    let printed = String::from_utf8(output.output().unwrap().stdout).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests.yaml");
    if std::env::var_os("OPKIT_BLESS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    let reviewed = fs::read_to_string(&path).unwrap();
    let differs = printed.lines().zip(reviewed.lines());
    let first = differs.into_iter().find(|(one, other)| one != other);
    assert_eq!(first, None, "the first difference");
    assert_eq!(printed, reviewed);
}
