//! The smallest operator: time to the first reconcile, memory when idle, size.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::Instant;

/// Time after which an operator is idle.
const SETTLE: Duration = Duration::from_secs(3);
/// Time limit for the first reconcile.
const START_MAX: Duration = Duration::from_secs(30);

/// Starts `program` on the API server of `kubeconfig`, waits until it prints that it reconciles,
/// and measures it when it is idle.
pub(crate) fn measure(program: &Path, kubeconfig: &Path) -> Result<Value> {
    let binary_bytes = stripped_size(program)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (first, idle) = runtime.block_on(async {
        let started = Instant::now();
        let mut process = Command::new(program)
            .env("KUBECONFIG", kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let output = process
            .stdout
            .take()
            .context("the operator has no output")?;
        let mut lines = BufReader::new(output).lines();
        let line = tokio::time::timeout(START_MAX, lines.next_line()).await;
        let line = line.context("the operator does not reconcile")??;
        ensure!(
            line.as_deref() == Some("reconciled"),
            "the operator printed {line:?}"
        );
        let first = started.elapsed();
        tokio::time::sleep(SETTLE).await;
        let id = process.id().context("the operator has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|line| line.split_whitespace().next());
        let kilobytes: u64 = kilobytes.context("the operator has ended")?.parse()?;
        process.kill().await?;
        Ok::<_, anyhow::Error>((first, kilobytes * 1024))
    })?;
    Ok(json!({
        "first_ms": first.as_secs_f64() * 1e3,
        "idle_bytes": idle,
        "binary_bytes": binary_bytes,
    }))
}

/// Returns the size of a program without its symbols.
fn stripped_size(program: &Path) -> Result<u64> {
    let stripped = program.with_extension("stripped");
    let mut strip = std::process::Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(program);
    ensure!(strip.status()?.success(), "cannot strip {program:?}");
    Ok(std::fs::metadata(&stripped)?.len())
}
