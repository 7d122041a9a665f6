//! Golden files of the output of commands, in `golden`.

use std::fs;
use std::path::Path;

/// Compares a text with the golden file `name`; `OPKIT_BLESS=1` rewrites the file.
pub(super) fn golden(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden");
    let path = folder.join(name);
    if std::env::var_os("OPKIT_BLESS").is_some_and(|value| !value.is_empty()) {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "OPKIT_BLESS=1 rewrites {}", path.display());
}

/// Returns the output of a command with `#` for times and ports, and without the lines of a rollout
/// that is not complete, which depend on the time.
pub(super) fn masked(output: &str) -> String {
    let lines = output.lines().filter(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            ["rollout", _, ready, "of", all, "available", _, "s"] => ready == all,
            ["rollout", ..] => false,
            _ => true,
        }
    });
    let lines = lines.map(|line| {
        let (start, time) = line.rsplit_once("   ").unwrap_or((line, ""));
        let line = match time
            .strip_suffix(" s")
            .is_some_and(|it| it.parse::<f64>().is_ok())
        {
            true => format!("{start}   # s"),
            false => line.to_owned(),
        };
        match line.split_once("127.0.0.1:") {
            Some((before, after)) => {
                let after = after.trim_start_matches(|char: char| char.is_ascii_digit());
                format!("{before}127.0.0.1:#{after}\n")
            }
            None => line + "\n",
        }
    });
    lines.collect()
}
