//! `cargo xtask soak`: an operator in bad weather with more objects, or with more names that come
//! and go, than `cargo test` has time for.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// How much.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many objects live in bad weather.
    #[arg(long, default_value_t = 50_000)]
    objects: u64,
    /// How many names come and go, instead: from 1,000,000 on, memory must not grow after the first
    /// tenth.
    #[arg(long, conflicts_with = "objects")]
    names: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (variable, count, tests) = match args.names {
        Some(names) => ("OPKIT_SOAK_NAMES", names, "soak::names::"),
        None => ("OPKIT_SOAK_OBJECTS", args.objects, "soak::everything"),
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
