//! Which measurements there are.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use opkit_benches::runs::{self, Measurement, measure};

use crate::rows::ROWS;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object a row.
    #[arg(long)]
    json: bool,
    /// Fewer operations and one repetition: whether it works, not how fast it is.
    #[arg(long)]
    quick: bool,
    /// How often everything is measured.
    #[arg(long)]
    repetitions: Option<u32>,
    /// The peer of kube-runtime.
    #[arg(long)]
    kube_runtime: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (scale, repetitions) = match args.quick {
        true => (10, 1),
        false => (1, 11),
    };
    let this = std::env::current_exe().context("where is this program?")?;
    let mut programs = vec![("ours", this)];
    programs.extend(args.kube_runtime.clone().map(|peer| ("kube", peer)));
    let queues = [
        (
            "queue 50k",
            vec!["distinct".to_owned(), count(50_000, scale)],
        ),
        (
            "queue 500k",
            vec!["distinct".to_owned(), count(500_000, scale)],
        ),
        (
            "queue 4 producers",
            vec![
                "producers".to_owned(),
                "4".to_owned(),
                count(1_000_000, scale),
                count(50_000, scale),
            ],
        ),
    ];
    let mut measurements: Vec<Measurement<'_>> = Vec::new();
    for (what, arguments) in &queues {
        for (who, program) in &programs {
            let start = move || measure(Command::new(program).arg("queue").args(arguments));
            measurements.push((format!("{who} {what}"), Box::new(start)));
        }
    }
    let repetitions = args.repetitions.unwrap_or(repetitions);
    runs::repeat(&measurements, repetitions, args.json, ROWS);
    Ok(())
}

fn count(full: usize, scale: usize) -> String {
    (full / scale).to_string()
}
