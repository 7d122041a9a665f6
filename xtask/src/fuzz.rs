//! `cargo xtask fuzz`: sends mutated input to a part of opkit for a given time.
//!
//! The inputs are mutations with random numbers from a seed, so that this works with a stable
//! compiler. `cargo test` runs the same test with a few inputs.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use opkit_random::Random;

/// Part to test, and time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Part to test
    #[arg(value_enum)]
    part: Part,
    /// Time to run, in seconds
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Seed of the random numbers; without it, a random seed
    #[arg(long)]
    seed: Option<u64>,
}

/// Part of opkit that reads input of others.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Part {
    /// CEL expressions, the schemas of their variables, and objects
    Cel,
    /// Bearer tokens and impersonation headers
    Tokens,
    /// Reviews that are sent to webhooks
    Webhooks,
}

/// Runs the test in release mode. A failure prints the input and the seed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (package, test) = match args.part {
        Part::Cel => (
            "opkit-cel",
            "tests::fuzz::expressions_neither_panic_nor_exceed_their_budget",
        ),
        Part::Tokens => (
            "opkit-apiserver",
            "tests::fuzz::credentials_are_never_confused",
        ),
        Part::Webhooks => (
            "opkit-webhook",
            "tests::fuzz::mutated_requests_get_a_response_of_their_kind",
        ),
    };
    let seed = args.seed.unwrap_or_else(Random::seed);
    let mut command = Command::new("cargo");
    command
        .args(["test", "--release", "--package", package, "--lib"])
        .args(["--", test, "--exact", "--nocapture"])
        .env("OPKIT_FUZZ_SECONDS", args.seconds.to_string())
        .env("OPKIT_FUZZ_SEED", seed.to_string());
    println!(
        "$ OPKIT_FUZZ_SECONDS={} OPKIT_FUZZ_SEED={seed} {command:?}",
        args.seconds
    );
    let status = command.status().context("cannot run cargo test")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
