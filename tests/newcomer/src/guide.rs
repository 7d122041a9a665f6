//! Guides whose commands and files a test follows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::project::{command_in, opkit, repository, text};
use crate::readme::file_name;

/// Step of a guide.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// File that the reader writes.
    File { path: String, text: String },
    /// Command that the reader types, with the output below it.
    Command { line: String, output: String },
}

/// Returns the steps of a Markdown text: files are blocks below their path, commands are lines of
/// `console` blocks that start with `$ `.
pub(crate) fn steps(markdown: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut named = None;
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if let Some(path) = named.take() {
                let text = block.join("\n") + "\n";
                steps.push(Step::File { path, text });
            } else if line == "```console" {
                steps.extend(commands(&block));
            }
        } else if !line.is_empty() {
            named = file_name(line).map(str::to_owned);
        }
    }
    steps
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    found
        .into_iter()
        .map(|(line, output)| Step::Command { line, output })
        .collect()
}

/// Guide of the repository, followed in an empty directory.
pub(crate) struct Guide {
    pub(crate) name: &'static str,
    markdown: String,
}

impl Guide {
    pub(crate) fn read(name: &'static str) -> Self {
        let path = repository().join("docs").join(name);
        Self {
            name,
            markdown: fs::read_to_string(path).unwrap(),
        }
    }

    /// Returns the commands that start so.
    pub(crate) fn lines(&self, start: &str) -> Vec<String> {
        let lines = steps(&self.markdown)
            .into_iter()
            .filter_map(|step| match step {
                Step::Command { line, .. } if line.starts_with(start) => Some(line),
                _ => None,
            });
        lines.collect()
    }

    /// Returns the commands in blocks of the language `shell`, without comments. Their output is
    /// not compared, because it contains times.
    pub(crate) fn cluster_lines(&self) -> Vec<String> {
        let mut blocks = self.markdown.split("```shell\n").skip(1);
        let mut lines = Vec::new();
        for block in &mut blocks {
            let block = block.split("```").next().unwrap_or_default();
            let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
            let without_comment =
                |line: &str| line.split(" #").next().unwrap_or(line).trim().to_owned();
            lines.extend(commands.map(without_comment));
        }
        lines
    }

    /// Runs the commands `opkit`, except `opkit dev`, and writes the files. Returns the directories
    /// of the projects. The output must be that of the guide; `OPKIT_BLESS=1` writes it there.
    pub(crate) fn follow(&self, parent: &Path) -> Vec<PathBuf> {
        let program = opkit();
        let (mut here, mut projects) = (parent.to_owned(), Vec::new());
        let (mut actual, mut rest) = (String::new(), self.markdown.as_str());
        for step in steps(&self.markdown) {
            match step {
                Step::File { path, text } => fs::write(here.join(path), text).unwrap(),
                Step::Command { line, output } => {
                    let words = words(&line);
                    match words.first().map(String::as_str) {
                        Some("cd") => {
                            here = parent.join(&words[1]);
                            projects.push(here.clone());
                        }
                        Some("opkit") if words[1] != "dev" => {
                            // Each project is new: it is created beside the others.
                            let here = if words[1] == "new" { parent } else { &here };
                            let mut command = command_in(here, &program);
                            let found = command.args(&words[1..]).output().unwrap();
                            let shown = shown(&found, &line);
                            let (before, after) = rest.split_once(&block(&line, &output)).unwrap();
                            actual += &format!("{before}{}", block(&line, &shown));
                            rest = after;
                        }
                        _ => {}
                    }
                }
            }
        }
        actual += rest;
        if std::env::var_os("OPKIT_BLESS").is_some_and(|value| !value.is_empty()) {
            fs::write(repository().join("docs").join(self.name), &actual).unwrap();
        } else {
            assert_eq!(
                self.markdown, actual,
                "OPKIT_BLESS=1 writes the output to the guide"
            );
        }
        projects
    }
}

fn block(line: &str, output: &str) -> String {
    format!("$ {line}\n{output}")
}

/// Returns the output of a command. The place of the checkout is not that of the reader.
fn shown(output: &Output, line: &str) -> String {
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{line}: {out}{errors}");
    assert_eq!(errors, "", "{line}");
    let checkout = repository().canonicalize().unwrap();
    let out = out.replace(&*checkout.to_string_lossy(), "../opkit");
    let lines = out
        .lines()
        .map(|line| match line.trim_start().starts_with("opkit   ") {
            true => "   opkit   path ../opkit/crates/opkit\n".to_owned(),
            false => format!("{line}\n"),
        });
    lines.collect()
}

/// Splits a command line at its spaces.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn steps_are_files_and_commands_in_their_order() {
    let markdown =
        "```console\n$ a b\nout\n\n$ c\n```\n`x/y`:\n\n```text\nz\n```\n```text\n$ no\n```\n";
    let command = |line: &str, output: &str| Step::Command {
        line: line.into(),
        output: output.into(),
    };
    let file = Step::File {
        path: "x/y".into(),
        text: "z\n".into(),
    };
    let expected = [command("a b", "out\n\n"), command("c", ""), file];
    assert_eq!(steps(markdown), expected);
}
