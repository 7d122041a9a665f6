//! The cache beside kube-runtime and client-go: `cargo xtask bench cache` builds and runs it.
//!
//! Every measurement is a process of its own, because memory that was once used is rarely given
//! back. `run` starts them all, several times around, and prints what came of it.

mod allocations;
mod ours;
mod real;
mod rows;
mod run;

use anyhow::Result;
use clap::{Parser, Subcommand};
use opkit_benches::{data::Kind, stand_in};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Serve made-up objects; prints the port.
    Serve { kind: Kind, objects: u64 },
    /// Measure the cache on a stand-in server.
    Ours(ours::Args),
    /// Write made-up Pods to the API server that KUBECONFIG names.
    Load { pods: u64 },
    /// Measure the cache on the API server that KUBECONFIG names.
    Real,
    /// Measure how long that server needs for the list alone.
    Server,
    /// Measure everything and print it.
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
