//! List of the measurements.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use opkit_benches::https::{JSON, JSON_GZIP, PROTOBUF};
use opkit_benches::runs::{self, Measurement, note};
use serde_json::{Value, json};

use crate::data::Resource;
use crate::load;
use crate::rows::ROWS;
use crate::servers::{Program, Server};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
    /// Use fewer objects and one repetition, to check that the benchmark works
    #[arg(long)]
    quick: bool,
    /// Number of repetitions
    #[arg(long)]
    repetitions: Option<u32>,
    /// Executable of `opkit`
    #[arg(long)]
    opkit: PathBuf,
    /// Executable of xtask, which starts the real API server
    #[arg(long)]
    real: Option<PathBuf>,
    /// Directory for the files of the servers
    #[arg(long)]
    directory: PathBuf,
    /// Run only measurements whose names contain this text, such as `pods`
    #[arg(long)]
    only: Option<String>,
}

#[derive(Clone, Copy)]
struct Size {
    config_maps: usize,
    pods: usize,
    gets: usize,
    lists: usize,
    repetitions: u32,
    /// Time after which a server is idle.
    settle: Duration,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let size = match args.quick {
        true => Size {
            config_maps: 2_000,
            pods: 500,
            gets: 2_000,
            lists: 3,
            repetitions: 1,
            settle: Duration::from_secs(1),
        },
        false => Size {
            config_maps: 20_000,
            pods: 5_000,
            gets: 40_000,
            lists: 9,
            repetitions: 5,
            settle: Duration::from_secs(5),
        },
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let mut programs = vec![("ours", Program::Opkit(args.opkit.clone()))];
    match &args.real {
        Some(xtask) => programs.push(("real", Program::Real(xtask.clone()))),
        None => note("the real API server is not measured"),
    }
    let mut measurements: Vec<Measurement<'_>> = Vec::new();
    for what in ["idle", "config maps", "pods"] {
        for (who, program) in &programs {
            let directory = args.directory.join(who);
            let runtime = &runtime;
            let measure = move || runtime.block_on(measure(what, program, &directory, size));
            measurements.push((format!("{who} {what}"), Box::new(measure)));
        }
    }
    if let Some(only) = &args.only {
        measurements.retain(|(name, _)| name.contains(only.as_str()));
    }
    let repetitions = args.repetitions.unwrap_or(size.repetitions);
    runs::repeat(&measurements, repetitions, args.json, ROWS);
    Ok(())
}

/// Starts a server, measures it, and stops it.
async fn measure(what: &str, program: &Program, directory: &Path, size: Size) -> Result<Value> {
    let server = Server::start(program, directory).await?;
    let figures = match what {
        "idle" => idle(&server, size).await,
        "config maps" => config_maps(&server, size).await,
        _ => pods(&server, size).await,
    };
    server.stop().await?;
    figures
}

async fn idle(server: &Server, size: Size) -> Result<Value> {
    tokio::time::sleep(size.settle).await;
    Ok(json!({
        "ready_ms": server.ready.as_secs_f64() * 1e3,
        "idle_bytes": server.memory()?,
    }))
}

async fn config_maps(server: &Server, size: Size) -> Result<Value> {
    const RESOURCE: Resource = Resource::ConfigMaps;
    let address = &server.address;
    let creates = load::create(address, RESOURCE, size.config_maps).await?;
    tokio::time::sleep(size.settle).await;
    let memory = server.memory()?;
    let gets = load::get(address, RESOURCE, size.config_maps, size.gets).await?;
    let list = load::list(address, RESOURCE, JSON, size.lists).await?;
    let gzip = load::list(address, RESOURCE, JSON_GZIP, size.lists).await?;
    let pages = load::pages(address, RESOURCE).await?;
    let protobuf = load::list(address, RESOURCE, PROTOBUF, size.lists).await?;
    Ok(json!({
        "creates_per_second": creates,
        "memory_bytes": memory,
        "gets_per_second": gets,
        "json_ms": list.median_ms,
        "json_bytes": list.bytes,
        "gzip_ms": gzip.median_ms,
        "gzip_bytes": gzip.bytes,
        "pages_ms": pages,
        "protobuf_ms": protobuf.median_ms,
        "protobuf_first_ms": protobuf.first_ms,
        "protobuf_bytes": protobuf.bytes,
        "memory_after_reads_bytes": server.memory()?,
    }))
}

async fn pods(server: &Server, size: Size) -> Result<Value> {
    const RESOURCE: Resource = Resource::Pods;
    let address = &server.address;
    let creates = load::create(address, RESOURCE, size.pods).await?;
    tokio::time::sleep(size.settle).await;
    let memory = server.memory()?;
    let list = load::list(address, RESOURCE, JSON, size.lists).await?;
    let gzip = load::list(address, RESOURCE, JSON_GZIP, size.lists).await?;
    let protobuf = load::list(address, RESOURCE, PROTOBUF, size.lists).await?;
    Ok(json!({
        "creates_per_second": creates,
        "memory_bytes": memory,
        "json_ms": list.median_ms,
        "json_bytes": list.bytes,
        "gzip_ms": gzip.median_ms,
        "gzip_bytes": gzip.bytes,
        "protobuf_ms": protobuf.median_ms,
        "protobuf_first_ms": protobuf.first_ms,
        "protobuf_bytes": protobuf.bytes,
    }))
}
