//! `cargo xtask soak`: an operator in bad weather, with more objects than `cargo test` has time for.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// How much.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many objects.
    #[arg(long, default_value_t = 50_000)]
    objects: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--release", "--package", "conformance", "--lib"])
        .args(["--", "soak::", "--nocapture"])
        .env("OPKIT_SOAK_OBJECTS", args.objects.to_string());
    println!("$ OPKIT_SOAK_OBJECTS={} {command:?}", args.objects);
    let status = command.status().context("cannot run cargo test")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
