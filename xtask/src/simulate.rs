//! `cargo xtask simulate`: runs the model tests over more seeds than `cargo test` does.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// Seeds and models to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of runs, from seed 0 on
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// Run only this seed
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run only this model
    #[arg(long, value_enum)]
    only: Option<Model>,
}

/// Model test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Model {
    /// Reflectors, stores and listeners against an API server
    Cache,
    /// Candidates for one Lease, and their fences
    LeaderElection,
    /// Replicas that share the slots of a ring
    Sharding,
}

impl Model {
    const ALL: [Self; 3] = [Self::Cache, Self::LeaderElection, Self::Sharding];

    /// Returns the package, and the test in it.
    const fn test(self) -> (&'static str, &'static str) {
        match self {
            Self::Cache => ("opkit-cache", "simulate::tests::many"),
            Self::LeaderElection => ("opkit-leaderelection", "simulate::tests::many"),
            Self::Sharding => ("opkit-leaderelection", "sharding::simulate::tests::many"),
        }
    }
}

/// Runs the models on all cores. The first failure of each model stops the run and prints its seed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (first, seeds) = match args.seed {
        Some(seed) => (seed, 1),
        None => (0, args.seeds),
    };
    let chosen = |model: &Model| args.only.is_none_or(|only| only == *model);
    for model in Model::ALL.into_iter().filter(chosen) {
        let (package, test) = model.test();
        let mut command = Command::new("cargo");
        command
            .args(["test", "--release", "--package", package, "--lib"])
            .args(["--", test, "--exact", "--ignored", "--nocapture"])
            .env("OPKIT_SIMULATE_FIRST", first.to_string())
            .env("OPKIT_SIMULATE_SEEDS", seeds.to_string());
        println!("$ OPKIT_SIMULATE_FIRST={first} OPKIT_SIMULATE_SEEDS={seeds} {command:?}");
        let status = command.status().context("cannot run cargo test")?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
