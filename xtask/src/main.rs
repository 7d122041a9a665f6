//! The project's own automation: `cargo xtask <task>`.
//!
//! Everything that a contributor or CI runs beyond plain cargo lives here, so that there is no
//! Makefile and nothing to install.
#![allow(
    clippy::print_stdout,
    reason = "a command of its own, which prints what it does and finds"
)]

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

mod bench;
mod ci;
mod conformance;
mod control_plane;
mod curl;
mod diff;
mod kinds;
mod mutate;
mod protobuf;
mod record;
mod simulate;
mod soak;
mod tidy;

/// The tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of the opkit repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure a room beside its peers.
    Bench(bench::Args),
    /// Run everything that must pass before a change is merged.
    Ci(ci::Args),
    /// Run the conformance suite on a control plane, and count the tests that it cannot run.
    Conformance(conformance::Args),
    /// Build etcd and Kubernetes from Go modules, once; the last line printed is their directory.
    ControlPlane(control_plane::Args),
    /// Send the requests of the differential suite to a fresh API server without controllers and
    /// keep its answers.
    Diff(diff::Args),
    /// Write the table of built-in kinds from what a real API server says of itself.
    Kinds(kinds::Args),
    /// Build faults into the engines and run the tests on each, to find promises that no test
    /// keeps.
    Mutate(mutate::Args),
    /// Write the table of protobuf messages from the sources of Kubernetes' Go modules.
    Protobuf(protobuf::Args),
    /// Run a client and write what it sends to an API server as a script of the differential suite.
    Record(record::Args),
    /// Run the model tests of the cache and of leader election over many seeds, in release.
    Simulate(simulate::Args),
    /// Run an operator in bad weather, with many objects.
    Soak(soak::Args),
    /// Check what no compiler or linter checks: layout, dependency direction, manifests, data
    /// files.
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Bench(args) => bench::run(&args),
        Task::Ci(args) => ci::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::ControlPlane(args) => control_plane::run(&args),
        Task::Diff(args) => diff::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Kinds(args) => kinds::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Mutate(args) => mutate::run(&args),
        Task::Protobuf(args) => protobuf::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Record(args) => record::run(&args),
        Task::Simulate(args) => simulate::run(&args),
        Task::Soak(args) => soak::run(&args),
        Task::Tidy => tidy::run(),
    };
    outcome.unwrap_or_else(|error| {
        // One line, whatever RUST_BACKTRACE says: returned from main, it would bring a backtrace
        // along.
        let _ = writeln!(io::stderr(), "xtask: {error:#}");
        ExitCode::FAILURE
    })
}
