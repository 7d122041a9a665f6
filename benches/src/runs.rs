//! Execution of measurements, each in a separate process and several times, and their output.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::rows::{Outcome, Row, Runs, TABLE_HEAD};

/// Measurement: its name, and the function that runs it.
pub type Measurement<'a> = (String, Box<dyn Fn() -> Result<Value> + 'a>);

/// Runs all measurements `repetitions` times and prints the rows.
pub fn repeat(measurements: &[Measurement<'_>], repetitions: u32, json: bool, rows: &[Row]) {
    let mut runs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    // Repetitions are the outer loop, so that other load of the machine spreads over all
    // measurements.
    for repetition in 1..=repetitions {
        for (name, measure) in measurements {
            note(&format!("{repetition}/{repetitions}: {name}"));
            match measure() {
                Ok(value) => runs.entry(name.clone()).or_default().push(value),
                Err(error) => note(&format!("{name}: {error:#}")),
            }
        }
    }
    print(json, &runs, rows);
}

fn print(json: bool, runs: &BTreeMap<String, Vec<Value>>, rows: &[Row]) {
    let of = |name: &str| Runs(runs.get(name).cloned().unwrap_or_default());
    let outcomes: Vec<Outcome> = rows.iter().map(|row| row.outcome(of)).collect();
    if !json {
        println!("{TABLE_HEAD}");
    }
    for outcome in &outcomes {
        match json {
            true => println!("{}", outcome.json()),
            false => println!("{}", outcome.text()),
        }
    }
    let failed = outcomes
        .iter()
        .filter(|row| row.holds == Some(false))
        .count();
    let uncounted = outcomes
        .iter()
        .filter(|row| row.must.is_some() && row.holds.is_none())
        .count();
    note(&format!(
        "{failed} do not hold, {uncounted} are not counted for lack of a peer"
    ));
}

/// Prints progress to stderr, because figures go to stdout.
pub fn note(text: &str) {
    eprintln!("{text}");
}

/// Runs a measurement and parses the line of JSON that it prints.
pub fn measure(command: &mut Command) -> Result<Value> {
    let output = command.output().context("cannot start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find(|line| line.starts_with('{'));
    match line {
        Some(line) if output.status.success() => Ok(serde_json::from_str(line)?),
        _ => {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("{} {}", output.status, error.trim());
        }
    }
}
