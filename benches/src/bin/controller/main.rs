//! Benchmark of the controller and its queue, kube-runtime and controller-runtime;
//! `cargo xtask bench controller` builds and runs it.
//!
//! Every measurement is a separate process. `run` starts all of them, several times, and prints the
//! results.

mod answers;
mod ours;
mod queue;
mod rows;
mod run;
mod sharding;
mod smallest;

use anyhow::Result;
use clap::{Parser, Subcommand};
use opkit_benches::data::Kind;
use opkit_benches::stand_in;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Serve generated objects; print the port
    Serve { kind: Kind, objects: u64 },
    /// Measure a controller on a stand-in server
    Controller(ours::Args),
    /// Run a replica that divides objects with others, or that is elected
    Replica(sharding::Args),
    /// Measure the work queue
    #[command(subcommand)]
    Queue(queue::Task),
    /// Run all measurements and print the results
    Run(run::Args),
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Run(args) => run::run(&args),
        Task::Queue(task) => queue::run(&task),
        Task::Serve { kind, objects } => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()?;
            Ok(runtime.block_on(stand_in::serve(kind, objects))?)
        }
        // As many threads as an operator has.
        Task::Replica(args) => tokio::runtime::Runtime::new()?.block_on(sharding::run(&args)),
        Task::Controller(args) => tokio::runtime::Runtime::new()?.block_on(ours::run(&args)),
    }
}
