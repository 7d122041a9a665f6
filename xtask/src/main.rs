//! Automation of the project: `cargo xtask <task>`.
//!
//! All tasks of contributors and CI beyond plain cargo are here, so that there is no Makefile and
//! nothing to install.
#![allow(
    clippy::print_stdout,
    reason = "a command prints its progress and results"
)]

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod apply_types;
mod bench;
mod build;
mod ci;
mod compat;
mod conformance;
mod control_plane;
mod curl;
mod diff;
mod fuzz;
mod kinds;
mod mutate;
mod picture;
mod protobuf;
mod rbac;
mod record;
mod release;
mod simulate;
mod soak;
mod tidy;

/// Command line of xtask.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of the opkit repository")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Write the table of types that the macro `apply_types!` reads
    ApplyTypes,
    /// Benchmark a crate and its peers
    Bench(bench::Args),
    /// Run everything that must pass before a change is merged
    Ci(ci::Args),
    /// Run test suites of other projects on the embedded API server
    Compat(compat::Args),
    /// Run the conformance suite on a control plane, and count skipped tests
    Conformance(conformance::Args),
    /// Build etcd and Kubernetes from Go modules, once; the last line of the output is their
    /// directory
    ControlPlane(control_plane::Args),
    /// Send the requests of the differential suite to a new API server without controllers, and
    /// compare or record its responses
    Diff(diff::Args),
    /// Send mutated input to a part of the API server for a given time
    Fuzz(fuzz::Args),
    /// Generate the table of built-in kinds from a real API server
    Kinds(kinds::Args),
    /// Insert faults into the engines and run the tests on each, to find behaviour without a test
    Mutate(mutate::Args),
    /// Draw the picture of `opkit dev` in the README
    Picture(picture::Args),
    /// Generate the table of protobuf messages from the sources of Kubernetes' Go modules
    Protobuf(protobuf::Args),
    /// Read the roles and bindings of a new API server, and write them for the embedded server
    Rbac(rbac::Args),
    /// Run a client and write its requests to an API server as a script of the differential suite
    Record(record::Args),
    /// Build the archives of a release and its changelog section, and package all crates
    Release(release::Args),
    /// Run the model tests of the cache and of leader election over many seeds, in release mode
    Simulate(simulate::Args),
    /// Run an operator under faults, with many objects
    Soak(soak::Args),
    /// Check what no compiler or linter checks: layout, dependency direction, manifests, data files
    Tidy,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::ApplyTypes => apply_types::run(Path::new(".")).map(|()| ExitCode::SUCCESS),
        Task::Bench(args) => bench::run(&args),
        Task::Ci(args) => ci::run(&args),
        Task::Compat(args) => compat::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::ControlPlane(args) => control_plane::run(&args),
        Task::Diff(args) => diff::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Kinds(args) => kinds::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Mutate(args) => mutate::run(&args),
        Task::Picture(args) => picture::run(Path::new("."), &args).map(|()| ExitCode::SUCCESS),
        Task::Protobuf(args) => protobuf::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Rbac(args) => rbac::run(&args).map(|()| ExitCode::SUCCESS),
        Task::Record(args) => record::run(&args),
        Task::Release(args) => release::run(&args),
        Task::Simulate(args) => simulate::run(&args),
        Task::Soak(args) => soak::run(&args),
        Task::Tidy => tidy::run(),
    };
    outcome.unwrap_or_else(|error| {
        // Printed here in one line: an error returned from main would add a backtrace if
        // RUST_BACKTRACE is set.
        let _ = writeln!(io::stderr(), "xtask: {error:#}");
        ExitCode::FAILURE
    })
}
