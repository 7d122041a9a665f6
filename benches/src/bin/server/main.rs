//! Benchmark of the embedded API server as a process, beside kube-apiserver and etcd;
//! `cargo xtask bench server` builds and runs it.
//!
//! Every measurement starts a new server and drives it over HTTPS with the same client.

mod data;
mod load;
mod rows;
mod run;
mod servers;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all measurements and print the results
    Run(run::Args),
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Run(args) => run::run(&args),
    }
}
