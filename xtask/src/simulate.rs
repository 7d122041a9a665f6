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
    /// Random objects that are converted to another version of their kind and back
    Conversions,
}

impl Model {
    const ALL: [Self; 4] = [
        Self::Cache,
        Self::LeaderElection,
        Self::Sharding,
        Self::Conversions,
    ];

    /// Returns the command that runs seeds `first` to `first + seeds`.
    fn command(self, first: u64, seeds: u64) -> Command {
        let many = ["--release", "--lib"].as_slice();
        let (package, options, test, ignored) = match self {
            Self::Cache => ("opkit-cache", many, "simulate::tests::many", true),
            Self::LeaderElection => ("opkit-leaderelection", many, "simulate::tests::many", true),
            Self::Sharding => {
                let test = "sharding::simulate::tests::many";
                ("opkit-leaderelection", many, test, true)
            }
            // A release build of this package takes longer than the test.
            Self::Conversions => {
                let test = "versions::declared::the_conversions_lose_nothing";
                ("conformance", ["--lib"].as_slice(), test, false)
            }
        };
        let mut command = Command::new("cargo");
        command.args(["test", "--package", package]).args(options);
        command.args(["--", test, "--exact", "--nocapture"]);
        if ignored {
            command.arg("--ignored");
        }
        command
            .env("OPKIT_SIMULATE_FIRST", first.to_string())
            .env("OPKIT_SIMULATE_SEEDS", seeds.to_string())
            .env("OPKIT_ROUND_TRIPS", first.saturating_add(seeds).to_string());
        command
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
        let mut command = model.command(first, seeds);
        println!("$ OPKIT_SIMULATE_FIRST={first} OPKIT_SIMULATE_SEEDS={seeds} {command:?}");
        let status = command.status().context("cannot run cargo test")?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
