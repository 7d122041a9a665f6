//! `cargo xtask soak`: runs an operator under faults with more objects, or with more deleted names,
//! than `cargo test` does.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// Size of the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of objects
    #[arg(long, default_value_t = 50_000)]
    objects: u64,
    /// Number of names to create and delete instead; from 1,000,000 on, memory must not grow after
    /// the first tenth
    #[arg(long, conflicts_with = "objects")]
    names: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (variable, count, tests) = match args.names {
        Some(names) => ("OPKIT_SOAK_NAMES", names, "soak::names::"),
        None => ("OPKIT_SOAK_OBJECTS", args.objects, "soak::all_statuses"),
    };
    let mut command = Command::new("cargo");
    command
        .args(["test", "--release", "--package", "conformance", "--lib"])
        .args(["--", tests, "--nocapture"])
        .env(variable, count.to_string());
    println!("$ {variable}={count} {command:?}");
    let status = command.status().context("cannot run cargo test")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
