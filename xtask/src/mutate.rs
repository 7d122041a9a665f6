//! `cargo xtask mutate`: inserts faults into the engines, to check that the tests find them.
//!
//! All chosen mutants are compiled into one copy of the workspace, each behind a condition that the
//! environment variable `OPKIT_MUTANT` enables. So there is only one build, and a mutant costs only
//! the time that the tests need to find it. A mutant that no test finds is a *survivor*: either the
//! code guarantees nothing there, or a test is missing.

mod copy;
mod find;
mod tests_of;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use opkit_random::Random;

use self::copy::Copy;
use self::find::{Mutant, find};
use self::tests_of::{Built, Found, Tests};

/// Files with the code that guarantees depend on, by package.
const FILES: &[(&str, &[&str])] = &[
    (
        "opkit-cache",
        &[
            "crates/cache/src/store.rs",
            "crates/cache/src/store/overlay.rs",
        ],
    ),
    (
        "opkit-client",
        &[
            "crates/client/src/fence.rs",
            "crates/client/src/fence/last_check.rs",
        ],
    ),
    (
        "opkit-controller",
        &[
            "crates/controller/src/context/adopt.rs",
            "crates/controller/src/context/apply.rs",
            "crates/controller/src/context/finalizer.rs",
            "crates/controller/src/context/prune.rs",
            "crates/controller/src/worker/dispatch.rs",
            "crates/controller/src/worker/requeue.rs",
            "crates/controller/src/worker/slots.rs",
        ],
    ),
    (
        "opkit-leaderelection",
        &[
            "crates/leaderelection/src/engine.rs",
            "crates/leaderelection/src/sharding/engine.rs",
            "crates/leaderelection/src/sharding/engine/actions.rs",
            "crates/leaderelection/src/sharding/ring.rs",
            "crates/leaderelection/src/sharding/ring/balance.rs",
            "crates/leaderelection/src/sharding/slots/table.rs",
        ],
    ),
    (
        "opkit-workqueue",
        &[
            "crates/workqueue/src/engine.rs",
            "crates/workqueue/src/engine/ready.rs",
        ],
    ),
];

/// Choice of mutants.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of mutants, chosen at random
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// Seed of the choice: the same seed chooses the same mutants of the same sources
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Choose only mutants of files whose path contains this text
    #[arg(long)]
    file: Option<String>,
    /// Print the chosen mutants and exit
    #[arg(long)]
    list: bool,
}

/// Builds the mutants, runs the tests on each, and prints the survivors.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut all = Vec::new();
    for (package, files) in FILES {
        let is_wanted = |file: &&&str| args.file.as_ref().is_none_or(|part| file.contains(part));
        for file in files.iter().filter(is_wanted) {
            let source = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
            all.extend(
                find(package, file, &source).with_context(|| format!("cannot parse {file}"))?,
            );
        }
    }
    let total = all.len();
    let chosen = choose(all, args.count, args.seed);
    println!("{} mutants of {total}, seed {}", chosen.len(), args.seed);
    if args.list {
        for (n, mutant) in chosen.iter().enumerate() {
            println!("{:4} {mutant}", n + 1);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let copy = Copy::new(Path::new("target/mutants"), FILES)?;
    let (chosen, tests) = build(&copy, chosen)?;
    let mut counts = BTreeMap::<Found, usize>::new();
    let mut survivors = Vec::new();
    for (n, mutant) in chosen.iter().enumerate() {
        let found = tests.run(n + 1, mutant)?;
        println!("{:4} {found:8} {mutant}", n + 1);
        *counts.entry(found).or_default() += 1;
        if found == Found::Survived {
            survivors.push((n + 1, mutant));
        }
    }
    println!("\n{counts:?}; survivors:");
    for (n, mutant) in &survivors {
        println!("{n:4} {mutant}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles the mutants, except those that the compiler refuses.
fn build(copy: &Copy, mut chosen: Vec<Mutant>) -> Result<(Vec<Mutant>, Tests)> {
    loop {
        copy.write(&chosen)?;
        let refused = match Tests::build(copy, &chosen)? {
            Built::Tests(tests) => return Ok((chosen, tests)),
            Built::Refused(numbers) => numbers,
        };
        let mut number = 0;
        chosen.retain(|mutant| {
            number += 1;
            let is_refused = refused.contains(&number);
            if is_refused {
                println!("does not compile: {mutant}");
            }
            !is_refused
        });
    }
}

/// Chooses `count` mutants at random, no two of which change the same text.
fn choose(mut all: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let mut random = Random::new(seed);
    let mut chosen: Vec<Mutant> = Vec::new();
    while chosen.len() < count && !all.is_empty() {
        let length = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let at = usize::try_from(random.below(length)).unwrap_or_default();
        let mutant = all.swap_remove(at);
        if !chosen.iter().any(|other| other.overlaps(&mutant)) {
            chosen.push(mutant);
        }
    }
    chosen.sort_by(|a, b| (&a.file, a.span.start).cmp(&(&b.file, b.span.start)));
    chosen
}

#[cfg(test)]
mod tests;
