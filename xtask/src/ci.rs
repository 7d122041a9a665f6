//! `cargo xtask ci`: everything that must pass before a change is merged.
//!
//! Each command is printed before it runs, so that a failing one can be run alone. The first
//! failure stops the run.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::tidy;

#[cfg(test)]
mod tests;

/// Steps to skip.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skip the tests, if they have already run
    #[arg(long)]
    no_test: bool,
}

/// Step of the run.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Step {
    /// cargo with these arguments, and with an optional environment variable.
    Cargo {
        arguments: &'static str,
        variable: Option<(&'static str, &'static str)>,
    },
    Tidy,
}

const fn cargo(arguments: &'static str) -> Step {
    Step::Cargo {
        arguments,
        variable: None,
    }
}

/// Runs the steps in order.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let has_deny = has_cargo_deny();
    for step in steps(args.no_test, has_deny) {
        let passed = match step {
            Step::Tidy => {
                println!("$ cargo xtask tidy");
                tidy::run()? == ExitCode::SUCCESS
            }
            Step::Cargo {
                arguments,
                variable,
            } => run_cargo(arguments, variable)?,
        };
        if !passed {
            return Ok(ExitCode::FAILURE);
        }
    }
    if !has_deny {
        println!("cargo deny is not installed: bans, licences and sources were not checked");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the steps, cheapest first. Never `--all-features`: two versions of k8s-openapi exclude
/// each other.
fn steps(no_test: bool, has_deny: bool) -> Vec<Step> {
    let mut steps = vec![
        cargo("fmt --all -- --check"),
        Step::Tidy,
        // As users build: without the features of dependencies that the tests enable.
        cargo("check --workspace"),
        cargo("clippy --workspace --all-targets -- -D warnings"),
        cargo("clippy --package opkit --features test --all-targets -- -D warnings"),
        cargo("clippy --package opkit-operator --features otlp --all-targets -- -D warnings"),
        cargo("clippy --package opkit-client --features oidc,ws --all-targets -- -D warnings"),
        Step::Cargo {
            arguments: "doc --workspace --no-deps",
            variable: Some(("RUSTDOCFLAGS", "-D warnings")),
        },
    ];
    if has_deny {
        steps.push(cargo("deny check bans licenses sources"));
    }
    if !no_test {
        steps.push(cargo("test --workspace"));
        // Without `oidc`, which the command enables for the whole workspace.
        steps.push(cargo("test --package opkit-client --lib credentials"));
        steps.push(cargo(
            "test --package opkit-operator --features otlp --lib telemetry",
        ));
    }
    steps
}

fn run_cargo(arguments: &str, variable: Option<(&str, &str)>) -> Result<bool> {
    let mut command = Command::new("cargo");
    command.args(arguments.split_whitespace());
    match variable {
        Some((name, value)) => {
            println!("$ {name}='{value}' cargo {arguments}");
            command.env(name, value);
        }
        None => println!("$ cargo {arguments}"),
    }
    let status = command
        .status()
        .with_context(|| format!("cannot run cargo {arguments}"))?;
    Ok(status.success())
}

fn has_cargo_deny() -> bool {
    let mut command = Command::new("cargo");
    command
        .args(["deny", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
