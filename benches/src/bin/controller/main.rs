//! The queue beside kube-runtime: `cargo xtask bench controller` builds and runs it.
//!
//! Every measurement is a process of its own. `run` starts them all, several times around, and prints
//! what came of it.

mod queue;
mod rows;
mod run;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure the work queue.
    #[command(subcommand)]
    Queue(queue::Task),
    /// Measure everything and print it.
    Run(run::Args),
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Run(args) => run::run(&args),
        Task::Queue(task) => queue::run(&task),
    }
}
