//! Calls of the compiler with the arguments that cargo used for this crate.

use std::path::Path;
use std::process::Command;

use compile_fail_arguments::rustc_arguments;

const ARGUMENTS: &[&str] = &rustc_arguments!();

/// Returns the compiler's messages about a file, one JSON object per line.
pub(crate) fn check(file: &Path, directory: &Path) -> String {
    let mut command = Command::new(ARGUMENTS[0]);
    command
        .args(["--edition=2024", "--crate-type=lib", "--crate-name=case"])
        .args(["--emit=metadata", "--error-format=json"])
        .arg("--out-dir")
        .arg(directory)
        .args(dependencies())
        .arg(file);
    let output = command.output().expect("rustc runs");
    String::from_utf8(output.stderr).expect("rustc writes UTF-8")
}

/// Returns the arguments that locate the dependencies, including `opkit`. Linker arguments and
/// lints are not needed here.
fn dependencies() -> Vec<String> {
    let mut found = Vec::new();
    let mut arguments = ARGUMENTS.iter().copied();
    while let Some(argument) = arguments.next() {
        match argument {
            "-L" => found.extend(arguments.next().map(|path| format!("-L{path}"))),
            "--extern" => {
                let named = arguments.next().filter(|named| named.starts_with("opkit="));
                found.extend(named.map(|named| format!("--extern={named}")));
            }
            _ => {}
        }
    }
    assert!(
        found
            .iter()
            .any(|argument| argument.starts_with("--extern=opkit=")),
        "cargo gives the path of opkit: {ARGUMENTS:?}"
    );
    found
}
