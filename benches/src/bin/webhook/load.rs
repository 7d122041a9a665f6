//! The load.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future;
use http::Method;
use opkit_benches::https::{Address, Connection, JSON, PollingConnection, PreparedRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::reviews::{self, CONVERT, MUTATE, VALIDATE};

/// Size of the load.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Port of the webhooks
    port: u16,
    /// Number of pairs of requests, one after another
    #[arg(long, default_value_t = 4_000)]
    pairs: usize,
    /// Number of requests on 16 connections
    #[arg(long, default_value_t = 40_000)]
    requests: usize,
    /// Number of objects in a conversion
    #[arg(long, default_value_t = 5_000)]
    objects: u64,
}

/// Connections of the load that measures the throughput.
const CONNECTIONS: usize = 16;
/// Repetitions of the conversion.
const CONVERSIONS: usize = 7;

/// Sends the load and returns the figures.
pub(crate) async fn run(args: &Args) -> Result<Value> {
    let address = Address {
        host: format!("{}:{}", Ipv4Addr::LOCALHOST, args.port),
        token: String::new(),
    };
    let admission = reviews::admission();
    let times = pairs(args, &address, &admission)?;
    let began = Instant::now();
    let workers = (0..CONNECTIONS).map(|_| {
        let (address, admission) = (&address, &admission);
        async move {
            let mut connection = Connection::open(address).await?;
            for number in 0..args.requests / CONNECTIONS {
                let path = [MUTATE, VALIDATE][number % 2];
                post(&mut connection, path, admission.clone()).await?;
            }
            Ok::<_, anyhow::Error>(())
        }
    });
    future::try_join_all(workers).await?;
    let per_second = args.requests as f64 / began.elapsed().as_secs_f64();
    let mut connection = Connection::open(&address).await?;
    let conversion = reviews::conversion(args.objects);
    let mut conversions = Vec::new();
    for _ in 0..CONVERSIONS {
        let began = Instant::now();
        post(&mut connection, CONVERT, conversion.clone()).await?;
        conversions.push(began.elapsed());
    }
    conversions.sort();
    let at = |times: &[Duration], part: f64| {
        let index = (times.len() as f64 * part) as usize;
        times.get(index).copied().unwrap_or_default()
    };
    Ok(json!({
        "p50_us": at(&times, 0.5).as_secs_f64() * 1e6,
        "p99_us": at(&times, 0.99).as_secs_f64() * 1e6,
        "requests_per_second": per_second,
        "conversion_ms": at(&conversions, 0.5).as_secs_f64() * 1e3,
    }))
}

/// Sends pairs of requests on one connection, and returns the times of the pairs in order of size.
fn pairs(args: &Args, address: &Address, admission: &str) -> Result<Vec<Duration>> {
    let mut connection = PollingConnection::open(address)?;
    let requests = [MUTATE, VALIDATE]
        .map(|path| PreparedRequest::post(address, &format!("{path}?timeout=10s"), admission));
    // The first tenth warms up.
    let mut times = Vec::new();
    for _ in 0..args.pairs + args.pairs / 10 {
        let began = Instant::now();
        for request in &requests {
            let (code, length) = connection.send(request)?;
            ensure!(code == 200 && length > 0, "{code}, {length} bytes");
        }
        times.push(began.elapsed());
    }
    let mut times = times.split_off(args.pairs / 10);
    times.sort();
    Ok(times)
}

async fn post(connection: &mut Connection, path: &str, body: String) -> Result<()> {
    let path = format!("{path}?timeout=10s");
    let (code, length) = connection.send(Method::POST, &path, JSON, body).await?;
    ensure!(code == 200 && length > 0, "{path}: {code}, {length} bytes");
    Ok(())
}
