//! A reflector on the stand-in server: first sync, memory, events per second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, Config, Resource, ResourceExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub(crate) struct Row<'a> {
    pub(crate) kind: &'a str,
    pub(crate) port: u16,
    pub(crate) objects: usize,
    pub(crate) events: u64,
    pub(crate) streaming: bool,
    pub(crate) cleared: bool,
}

pub(crate) fn run(row: &Row<'_>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let url = format!("http://127.0.0.1:{}", row.port).parse()?;
        let client = Client::try_from(Config::new(url))?;
        if row.kind == "pods" {
            let (reader, writer) = reflector::store::<Pod>();
            measure(row, Api::all(client), reader, writer).await
        } else {
            let resource = ApiResource {
                group: "example.com".to_owned(),
                version: "v1".to_owned(),
                api_version: "example.com/v1".to_owned(),
                kind: "Robot".to_owned(),
                plural: "robots".to_owned(),
            };
            let writer = reflector::store::Writer::<DynamicObject>::new(resource.clone());
            let api = Api::all_with(client, &resource);
            measure(row, api, writer.as_reader(), writer).await
        }
    })
}

async fn measure<K>(
    row: &Row<'_>,
    api: Api<K>,
    reader: reflector::Store<K>,
    writer: reflector::store::Writer<K>,
) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync + Unpin,
{
    let mut config = watcher::Config::default();
    if row.streaming {
        config = config.streaming_lists();
    }
    let cleared = row.cleared;
    let seen = Arc::new(AtomicU64::new(0));
    let count = seen.clone();
    let base = status("VmRSS:");
    let began = Instant::now();
    let stream = watcher(api, config)
        .default_backoff()
        .modify(move |object| {
            if cleared {
                object.managed_fields_mut().clear();
            }
        })
        .reflect(writer);
    tokio::spawn(stream.for_each(move |event| {
        // An expired watch is an error from which the watcher recovers.
        if let Ok(watcher::Event::Apply(_)) = event {
            count.fetch_add(1, Ordering::Relaxed);
        }
        async {}
    }));
    reader.wait_until_ready().await?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(reader.len() == row.objects, "{} objects", reader.len());
    let peak = status("VmHWM:");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let steady = status("VmRSS:");

    let _ = std::fs::write("/proc/self/clear_refs", "5");
    order(row.port, "/ready").await?;
    order(row.port, "/expire").await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // After the relist there is a watch again.
    order(row.port, "/ready").await?;
    let relist = status("VmHWM:");

    let began = Instant::now();
    seen.store(0, Ordering::Relaxed);
    order(row.port, &format!("/go?events={}", row.events)).await?;
    while seen.load(Ordering::Relaxed) < row.events {
        tokio::time::sleep(Duration::from_millis(2)).await;
        ensure!(
            began.elapsed().as_secs() < 300,
            "the events did not arrive in 300 s"
        );
    }
    let line = json!({
        "objects": reader.len(),
        "sync_seconds": seconds,
        "peak_bytes": peak,
        "steady_bytes": steady,
        "relist_peak_bytes": relist,
        "bytes_per_object": steady.saturating_sub(base) / row.objects as u64,
        "events_per_second": row.events as f64 / began.elapsed().as_secs_f64(),
    });
    println!("{line}");
    std::process::exit(0);
}

pub(crate) async fn order(port: u16, path: &str) -> Result<()> {
    let mut connection = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: stand-in\r\nconnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    connection.read_to_end(&mut Vec::new()).await?;
    Ok(())
}

/// Returns a field of /proc/self/status, in bytes.
fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
