//! List of the measurements.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use opkit_benches::data::Kind;
use opkit_benches::runs::{self, Measurement, measure, note};
use opkit_benches::stand_in::Server;

use crate::rows::ROWS;
use crate::sharding::{self, How, Setup};
use crate::smallest;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
    /// Use fewer operations and one repetition, to check that the benchmark works
    #[arg(long)]
    quick: bool,
    /// Number of repetitions
    #[arg(long)]
    repetitions: Option<u32>,
    /// Executable of the kube-runtime peer
    #[arg(long)]
    kube_runtime: Option<PathBuf>,
    /// Executable of the smallest operator, built with the profile `operator`
    #[arg(long)]
    minimal: Option<PathBuf>,
    /// Executable of the controller-runtime peer
    #[arg(long)]
    controller_runtime: Option<PathBuf>,
    /// Executable of the smallest operator of controller-runtime
    #[arg(long)]
    controller_runtime_minimal: Option<PathBuf>,
    /// Executable `opkit`, which serves the replicas that divide objects
    #[arg(long)]
    opkit: Option<PathBuf>,
    /// Kubeconfig of a real API server, for the smallest operators
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Run only measurements whose names contain this text, such as `burst`
    #[arg(long)]
    only: Option<String>,
}

/// Names and executables of opkit's benchmark and of the peers that are available.
type Programs<'a> = [(&'static str, Option<&'a Path>); 3];

/// Number of concurrent reconciles, unless it is part of the measurement.
const WORKERS: u64 = 4;
const IN_FLIGHT: u64 = 2_000;

struct Size {
    objects: u64,
    /// Number of reconciles of each object.
    rounds: u64,
    /// Number of changes of each object.
    bursts: u64,
    /// Number of changes that come one after the other.
    changes: u64,
    repetitions: u32,
    /// Divisor of the number of keys in the queue.
    scale: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let size = match args.quick {
        true => Size {
            objects: 2_000,
            rounds: 2,
            bursts: 1,
            changes: 500,
            repetitions: 1,
            scale: 10,
        },
        false => Size {
            objects: 20_000,
            rounds: 20,
            bursts: 2,
            changes: 4_000,
            repetitions: 11,
            scale: 1,
        },
    };
    let this = std::env::current_exe().context("cannot find the path of this program")?;
    let server = Server::start(&this, Kind::Pods, size.objects);
    let server = server.context("cannot start the stand-in server")?;
    let mut measurements = Vec::new();
    queues(args, &size, &this, &mut measurements);
    controllers(args, &size, &this, server.port, &mut measurements);
    match &args.kubeconfig {
        Some(kubeconfig) => smallest(args, kubeconfig, &mut measurements),
        None => note("there is no kubeconfig: the smallest operators are not measured"),
    }
    match &args.opkit {
        Some(opkit) => replicas(&size, &this, opkit, &mut measurements),
        None => note("there is no executable opkit: replicas are not measured"),
    }
    if let Some(only) = &args.only {
        measurements.retain(|(name, _)| name.contains(only.as_str()));
    }
    let repetitions = args.repetitions.unwrap_or(size.repetitions);
    runs::repeat(&measurements, repetitions, args.json, ROWS);
    Ok(())
}

fn queues<'a>(
    args: &'a Args,
    size: &Size,
    this: &'a Path,
    measurements: &mut Vec<Measurement<'a>>,
) {
    let count = |full: u64| (full / size.scale).to_string();
    let [distinct, producers] = ["distinct", "producers"].map(str::to_owned);
    let queues = [
        ("queue 50k", vec![distinct.clone(), count(50_000)]),
        ("queue 500k", vec![distinct, count(500_000)]),
        (
            "queue 4 producers",
            vec![producers, "4".to_owned(), count(1_000_000), count(50_000)],
        ),
    ];
    for (what, arguments) in queues {
        let mut add = |who: &str, program: &'a Path| {
            let arguments = arguments.clone();
            let start = move || measure(Command::new(program).arg("queue").args(&arguments));
            measurements.push((format!("{who} {what}"), Box::new(start)));
        };
        add("ours", this);
        if let Some(peer) = &args.kube_runtime {
            add("kube", peer);
        }
    }
}

fn controllers<'a>(
    args: &'a Args,
    size: &Size,
    this: &'a Path,
    port: u16,
    measurements: &mut Vec<Measurement<'a>>,
) {
    let (ours, kube, go) = (
        Some(this),
        args.kube_runtime.as_deref(),
        args.controller_runtime.as_deref(),
    );
    let rounds = size.rounds;
    let whats: [(&str, u64, u64, Programs<'_>); 8] = [
        (
            "dispatch",
            WORKERS,
            rounds,
            [("ours", ours), ("kube", kube), ("go", go)],
        ),
        (
            "typed",
            WORKERS,
            rounds,
            [("ours", ours), ("kube", None), ("go", None)],
        ),
        (
            "object",
            WORKERS,
            rounds,
            [("ours", ours), ("kube", None), ("go", None)],
        ),
        (
            "read",
            WORKERS,
            rounds,
            [("ours", ours), ("kube", None), ("go", go)],
        ),
        (
            "burst",
            WORKERS,
            size.bursts,
            [("ours", ours), ("kube", kube), ("go", go)],
        ),
        (
            "latency",
            WORKERS,
            size.changes,
            [("ours", ours), ("kube", kube), ("go", go)],
        ),
        (
            "answers",
            IN_FLIGHT,
            rounds.min(10),
            [("ours", ours), ("kube", kube), ("go", None)],
        ),
        (
            "flight",
            IN_FLIGHT,
            rounds.min(10),
            [("ours", ours), ("kube", kube), ("go", go)],
        ),
    ];
    for (what, workers, count, programs) in whats {
        let numbers = [u64::from(port), size.objects, workers, count].map(|n| n.to_string());
        let arguments = ["controller".to_owned(), what.to_owned()];
        let arguments: Vec<String> = arguments.into_iter().chain(numbers).collect();
        for (who, program) in programs {
            let Some(program) = program else { continue };
            let arguments = arguments.clone();
            let start = move || measure(Command::new(program).args(&arguments));
            measurements.push((format!("{who} {what}"), Box::new(start)));
        }
    }
}

fn replicas<'a>(
    size: &Size,
    this: &'a Path,
    opkit: &'a Path,
    measurements: &mut Vec<Measurement<'a>>,
) {
    let setup = Setup {
        this,
        opkit,
        objects: size.objects,
    };
    for (name, how, count) in [
        ("shard elected", How::Elected, 1),
        ("shard two", How::Sharded, 2),
        ("shard three", How::Sharded, 3),
    ] {
        let start = move || sharding::burst(setup, how, count);
        measurements.push((format!("ours {name}"), Box::new(start)));
    }
    let start = move || sharding::three(setup);
    measurements.push(("ours shard memory".to_owned(), Box::new(start)));
}

fn smallest<'a>(args: &'a Args, kubeconfig: &'a Path, measurements: &mut Vec<Measurement<'a>>) {
    if let Some(ours) = &args.minimal {
        let start = move || smallest::measure(ours, kubeconfig);
        measurements.push(("ours smallest".to_owned(), Box::new(start)));
    }
    if let Some(peer) = &args.controller_runtime_minimal {
        let start = move || smallest::measure(peer, kubeconfig);
        measurements.push(("go smallest".to_owned(), Box::new(start)));
    }
}
