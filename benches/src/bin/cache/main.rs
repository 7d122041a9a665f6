//! Benchmark of the cache, kube-runtime and client-go; `cargo xtask bench cache` builds and runs
//! it.
//!
//! Every measurement is a separate process, because a process rarely returns memory that it has
//! used. `run` starts all of them, several times, and prints the results.

mod allocations;
mod ours;
mod real;
mod rows;
mod run;

use anyhow::Result;
use clap::{Parser, Subcommand};
use opkit_benches::data::Kind;
use opkit_benches::stand_in;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Serve generated objects; print the port
    Serve { kind: Kind, objects: u64 },
    /// Measure the cache on a stand-in server
    Ours(ours::Args),
    /// Write generated Pods to the API server of KUBECONFIG
    Load { pods: u64 },
    /// Measure the cache on the API server of KUBECONFIG
    Real,
    /// Measure the time that this server needs for the list alone
    Server,
    /// Run all measurements and print the results
    Run(run::Args),
}

fn main() -> Result<()> {
    let task = Cli::parse().task;
    if let Task::Run(args) = task {
        return run::run(&args);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match task {
            Task::Serve { kind, objects } => Ok(stand_in::serve(kind, objects).await?),
            Task::Ours(args) => ours::run(&args).await,
            Task::Load { pods } => real::load(pods).await,
            Task::Real => real::sync().await,
            Task::Server => real::server_alone().await,
            Task::Run(_) => Ok(()),
        }
    })
}
