//! `cargo xtask simulate`: the model test of the cache, over more seeds than `cargo test` has time for.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// Which seeds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many runs, from seed 0 on.
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// One run alone, that of this seed.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
}

/// Runs them on all cores. The first failure of each ends the run and names its seed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (first, seeds) = match args.seed {
        Some(seed) => (seed, 1),
        None => (0, args.seeds),
    };
    let mut command = Command::new("cargo");
    command
        .args(["test", "--release", "--package", "opkit-cache", "--lib"])
        .args(["simulate::tests::many", "--", "--ignored", "--nocapture"])
        .env("OPKIT_SIMULATE_FIRST", first.to_string())
        .env("OPKIT_SIMULATE_SEEDS", seeds.to_string());
    println!("$ OPKIT_SIMULATE_FIRST={first} OPKIT_SIMULATE_SEEDS={seeds} {command:?}");
    let status = command.status().context("cannot run cargo test")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
