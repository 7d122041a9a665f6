//! Load on one server: creates and gets on several connections, lists on one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use opkit_benches::https::{Accept, Address, Connection, JSON};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::data::Resource;

/// Number of connections of creates and gets.
const CONNECTIONS: usize = 16;

/// Creates `count` objects, and returns the number of creates per second.
pub(crate) async fn create(address: &Address, resource: Resource, count: usize) -> Result<f64> {
    per_second(address, count, move |number| {
        let path = resource.path().to_owned();
        (Method::POST, path, resource.object(number), 201)
    })
    .await
}

/// Reads `count` objects of `objects` that exist, and returns the number of gets per second.
pub(crate) async fn get(
    address: &Address,
    resource: Resource,
    objects: usize,
    count: usize,
) -> Result<f64> {
    per_second(address, count, move |number| {
        // Objects that follow each other are far apart in the order of the store.
        let path = resource.object_path(number.wrapping_mul(7_919) % objects);
        (Method::GET, path, String::new(), 200)
    })
    .await
}

/// Sends the requests with the numbers from 0 to `count`, and returns their number per second.
async fn per_second(
    address: &Address,
    count: usize,
    request: impl Fn(usize) -> (Method, String, String, u16) + Clone + Send + 'static,
) -> Result<f64> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = Connection::open(address).await?;
        connection.get("/version", JSON).await?;
        connections.push(connection);
    }
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for mut connection in connections {
        let (next, request) = (next.clone(), request.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                let (method, path, body, expected) = request(number);
                let (code, _) = connection.send(method, &path, JSON, body).await?;
                ensure!(code == expected, "{path}: {code}");
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// Times of several lists.
pub(crate) struct Lists {
    /// Time of the first list in milliseconds.
    pub(crate) first_ms: f64,
    /// Median of the times of the other lists in milliseconds.
    pub(crate) median_ms: f64,
    /// Length of the body in bytes.
    pub(crate) bytes: usize,
}

/// Lists all objects `repetitions` times after the first time.
pub(crate) async fn list(
    address: &Address,
    resource: Resource,
    accept: Accept,
    repetitions: usize,
) -> Result<Lists> {
    let mut connection = Connection::open(address).await?;
    connection.get("/version", JSON).await?;
    let path = format!("{}?resourceVersion=0", resource.path());
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..=repetitions {
        let began = Instant::now();
        let (code, length) = connection
            .send(Method::GET, &path, accept, String::new())
            .await?;
        ensure!(code == 200, "{path}: {code}");
        times.push(began.elapsed());
        bytes = length;
    }
    let first = times.remove(0);
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or(first);
    Ok(Lists {
        first_ms: milliseconds(first),
        median_ms: milliseconds(median),
        bytes,
    })
}

/// Lists all objects in pages of 500, and returns the total time in milliseconds.
pub(crate) async fn pages(address: &Address, resource: Resource) -> Result<f64> {
    let mut connection = Connection::open(address).await?;
    connection.get("/version", JSON).await?;
    let began = Instant::now();
    let mut token = String::new();
    loop {
        let path = format!("{}?limit=500&continue={token}", resource.path());
        let (code, body) = connection.get(&path, JSON).await?;
        ensure!(code == 200, "{path}: {code}");
        // The metadata is near the start of the body, before the items.
        let next = continue_token(&body);
        match next {
            Some(next) => token = next,
            None => return Ok(milliseconds(began.elapsed())),
        }
    }
}

fn continue_token(body: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(body.get(..1024).unwrap_or(body)).into_owned();
    let (_, rest) = start.split_once("\"metadata\":")?;
    let metadata = serde_json::Deserializer::from_str(rest)
        .into_iter::<Value>()
        .next()?
        .ok()?;
    Some(metadata.get("continue")?.as_str()?.to_owned()).filter(|token| !token.is_empty())
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
