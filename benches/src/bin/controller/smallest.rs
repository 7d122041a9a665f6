//! The smallest operator: how soon it reconciles, what it needs when it is idle, how large it is.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::Instant;

/// After so long an operator is idle.
const SETTLE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts `program` on the API server of `kubeconfig`, waits until it says that it reconciles, and
/// looks at it when it has nothing to do any more.
pub(crate) fn measure(program: &Path, kubeconfig: &Path) -> Result<Value> {
    let binary_bytes = stripped_size(program)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (first, idle) = runtime.block_on(async {
        let began = Instant::now();
        let mut process = Command::new(program)
            .env("KUBECONFIG", kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let output = process.stdout.take().context("it has no output")?;
        let mut lines = BufReader::new(output).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.context("it does not reconcile")??;
        ensure!(line.as_deref() == Some("reconciled"), "it said {line:?}");
        let first = began.elapsed();
        tokio::time::sleep(SETTLE).await;
        let id = process.id().context("it has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|line| line.split_whitespace().next());
        let kilobytes: u64 = kilobytes.context("it has ended")?.parse()?;
        process.kill().await?;
        Ok::<_, anyhow::Error>((first, kilobytes * 1024))
    })?;
    Ok(json!({
        "first_ms": first.as_secs_f64() * 1e3,
        "idle_bytes": idle,
        "binary_bytes": binary_bytes,
    }))
}

/// The size of a program without its symbols.
fn stripped_size(program: &Path) -> Result<u64> {
    let stripped = program.with_extension("stripped");
    let mut strip = std::process::Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(program);
    ensure!(strip.status()?.success(), "cannot strip {program:?}");
    Ok(std::fs::metadata(&stripped)?.len())
}
