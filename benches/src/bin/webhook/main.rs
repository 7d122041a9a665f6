//! Benchmark of webhook servers: an operator with webhooks beside a manager of controller-runtime
//! with the same webhooks; `cargo xtask bench webhook` builds and runs it.
//!
//! A server runs on one core and the load on another one.

mod load;
mod reviews;
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
    /// Send requests to the webhooks on this port, and print the figures as a line of JSON
    Load(load::Args),
    /// Run all measurements and print the results
    Run(run::Args),
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Run(args) => run::run(&args),
        Task::Load(args) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let figures = runtime.block_on(load::run(&args))?;
            println!("{figures}");
            Ok(())
        }
    }
}
