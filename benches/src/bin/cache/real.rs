//! The cache on a real API server, which sends built-in kinds in protobuf.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use opkit_benches::{data, process};
use opkit_cache::{InformerFactory, Scope};
use opkit_client::{
    Encoding, Kind, ListOptions, ObjectKey, Patch, ResponseFormat, RestClient, VersionMatch,
    WriteOptions,
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const AT_ONCE: usize = 16;
const MANAGER: &str = "bench";

async fn connect() -> Result<RestClient> {
    Ok(RestClient::new(opkit_client::connect(None).await?))
}

/// Creates the Pods and sets their status.
pub(crate) async fn load(pods: u64) -> Result<()> {
    let client = connect().await?;
    let kind = Kind::of::<Pod>();
    let objects = data::Kind::Pods.objects(pods).enumerate();
    stream::iter(objects)
        .map(|(number, mut pod)| {
            let (client, kind) = (&client, &kind);
            async move {
                let name = format!("pod-{number:06}");
                let status = pod["status"].take();
                let metadata = &pod["metadata"];
                let metadata = json!({
                    "name": name, "labels": metadata["labels"], "annotations": metadata["annotations"],
                });
                pod["apiVersion"] = json!("v1");
                pod["kind"] = json!("Pod");
                pod["metadata"] = metadata;
                let options = WriteOptions::for_manager(MANAGER);
                client.create(kind, Some("default"), &pod, &options).await?;
                let key = ObjectKey::from(("default", name.as_str()));
                let status = json!({"status": status});
                let patch = Patch::Merge(&status);
                client.patch(kind, &key, Some("status"), patch, &options).await?;
                Ok::<_, anyhow::Error>(())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// Measures the first sync.
pub(crate) async fn sync() -> Result<()> {
    let client = connect().await?;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    let base = process::resident();
    let started = Instant::now();
    let pods = factory.informer::<Pod>();
    pods.informer().wait_for_sync().await;
    let seconds = started.elapsed().as_secs_f64();
    let (peak, count) = (process::peak(), pods.len());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let steady = process::resident();
    let line = json!({
        "objects": count,
        "sync_seconds": seconds,
        "peak_bytes": peak,
        "steady_bytes": steady,
        "bytes_per_object": steady.saturating_sub(base) / count.max(1) as u64,
    });
    println!("{line}");
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Measures the time that the server needs for the list, which is read and dropped.
pub(crate) async fn server_alone() -> Result<()> {
    let client = connect().await?;
    let options = ListOptions::new().version("0", VersionMatch::NotOlderThan);
    let format = ResponseFormat {
        protobuf: true,
        ..Default::default()
    };
    let started = Instant::now();
    let list = client.list(&Kind::of::<Pod>(), &options, format).await;
    let list = list.context("cannot list")?;
    ensure!(
        list.encoding == Encoding::Protobuf,
        "the server did not send protobuf"
    );
    let line = json!({
        "sync_seconds": started.elapsed().as_secs_f64(),
        "bytes": list.body.len(),
    });
    println!("{line}");
    Ok(())
}
