//! Help and usage errors of every command, found by reading the help of each from the root.

use super::*;

/// A command, and its help.
struct Help {
    /// Words after `opkit`.
    path: Vec<String>,
    text: String,
}

/// Runs `opkit` with arguments.
fn run(arguments: &[String], last: &str) -> Output {
    let directory = TempDir::new().unwrap();
    let mut command = opkit(directory.path());
    command.args(arguments).arg(last).output().unwrap()
}

/// Returns the help of every command and subcommand.
fn all() -> Vec<Help> {
    let (mut found, mut waiting) = (Vec::new(), vec![Vec::new()]);
    while let Some(path) = waiting.pop() {
        let output = run(&path, "--help");
        assert_eq!(output.status.code(), Some(0), "opkit {}", path.join(" "));
        let text = String::from_utf8(output.stdout).unwrap();
        for name in subcommands(&text) {
            let mut below = path.clone();
            below.push(name);
            waiting.push(below);
        }
        found.push(Help { path, text });
    }
    found
}

/// Returns the names below `Commands:`, without `help`.
fn subcommands(text: &str) -> Vec<String> {
    let section = text.split("\nCommands:\n").nth(1).unwrap_or_default();
    let section = section.split("\n\n").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| {
        let line = line.strip_prefix("  ")?;
        line.split_whitespace()
            .next()
            .filter(|_| !line.starts_with(' '))
    });
    let names = names.filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_description_and_an_example() {
    let all = all();
    let paths: Vec<_> = all.iter().map(|help| help.path.join(" ")).collect();
    for known in [
        "dev",
        "import",
        "add api",
        "edit storage",
        "migrate storage",
        "man",
    ] {
        assert!(paths.iter().any(|path| path == known), "{paths:?}");
    }
    for Help { path, text } in &all {
        let command = ["opkit"].into_iter().chain(path.iter().map(String::as_str));
        let command = command.collect::<Vec<_>>().join(" ");
        let description = text.lines().next().unwrap_or_default();
        assert!(
            description.starts_with(|char: char| char.is_uppercase()) && description.len() > 10,
            "{command} has no description: {text}"
        );
        let (_, examples) = text
            .split_once("\nExample:\n")
            .or_else(|| text.split_once("\nExamples:\n"))
            .unwrap_or_else(|| panic!("{command} has no example: {text}"));
        assert!(
            examples.lines().any(|line| {
                let line = line.trim_start();
                line == command || line.starts_with(&format!("{command} "))
            }),
            "the example of {command} does not call it: {examples}"
        );
    }
}

#[test]
fn the_help_of_all_commands_is_as_reviewed() {
    let mut all = all();
    all.sort_by(|one, other| one.path.cmp(&other.path));
    let helps = all.iter().map(|Help { path, text }| {
        let command = path.join(" ");
        format!("$ opkit {command} --help\n{text}\n")
    });
    golden("help.txt", &helps.collect::<String>());
}

#[test]
fn an_unknown_flag_is_wrong_usage() {
    for Help { path, .. } in all() {
        let output = run(&path, "--no-such-flag");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let command = path.join(" ");
        assert_eq!(output.status.code(), Some(2), "opkit {command}: {stderr}");
        assert!(output.stdout.is_empty(), "opkit {command}");
        assert!(
            stderr.contains("--no-such-flag"),
            "opkit {command}: {stderr}"
        );
    }
}

#[test]
fn a_value_that_is_not_valid_is_wrong_usage() {
    for (arguments, words) in [
        ("explain robot", "write it as KIND/NAME"),
        ("explain /one", "write it as KIND/NAME"),
        ("manifests --replicas 0", "0 is not in 1.."),
        ("deploy --replicas 0", "0 is not in 1.."),
        ("cluster up --port 70000", "70000 is not in 0..=65535"),
        ("explain robot/one --output xml", "possible values"),
        ("no-such-command", "unrecognized subcommand"),
    ] {
        let words_of = arguments.split(' ').map(str::to_owned);
        let mut path: Vec<_> = words_of.collect();
        let last = path.pop().unwrap();
        let output = run(&path, &last);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
        assert!(stderr.contains(words), "{arguments}: {stderr}");
    }
}
