//! `cargo xtask record -- kubectl ...`: records the requests of a real client as a script of the
//! differential suite.
//!
//! The command runs with a temporary kubeconfig that names a plain-HTTP proxy on this machine. The
//! proxy forwards each request to the real server and stores it. The script runs in the suite's
//! namespace instead of the command's, and captures the versions and uids that the client took from
//! responses. The result is a draft: it has the client's requests, but not the objects that must
//! exist before.
//!
//! Upgrades of the connection (`exec`, `attach`, `port-forward`) are not recorded.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::curl::Target;

mod capture;
mod proxy;
mod script;
#[cfg(test)]
mod tests;

/// Command to run, server, and file to write.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// File to write the script to; without it, standard output, after the command's output
    #[arg(long)]
    out: Option<PathBuf>,
    /// Namespace that the command uses; in the script it is `${namespace}`
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Record the requests of discovery, OpenAPI and the version too
    #[arg(long)]
    all: bool,
    /// Duration of a watch, in seconds. The command gets all its events at the end of this time; in
    /// the script a watch lasts one second
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    watch_seconds: u64,
    /// Command, which must read KUBECONFIG
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command, writes the script, and exits with the command's exit code.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let server = args.target.server()?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen")?;
    let address = listener.local_addr().context("cannot listen")?;
    let folder = Folder::create()?;
    let config = folder.0.join("kubeconfig");
    fs::write(
        &config,
        kubeconfig(&format!("http://{address}"), &args.namespace),
    )
    .with_context(|| format!("cannot write {}", config.display()))?;
    let (status, exchanges) = proxy::during(
        &listener,
        &server,
        Duration::from_secs(args.watch_seconds),
        || command(&args.command, &config, &folder.0.join("cache")),
    )?;
    let about = format!("Recorded from `{}`.", about(&args.command));
    let kept = exchanges
        .iter()
        .filter(|exchange| args.all || !script::is_discovery(&exchange.path));
    let text = script::write(&about, &args.namespace, kept);
    match &args.out {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => io::stdout()
            .write_all(text.as_bytes())
            .context("cannot write the script")?,
    }
    Ok(exit_code(status))
}

/// Runs the command with an empty discovery cache, so that it sends all its requests.
fn command(command: &[String], config: &Path, cache: &Path) -> Result<ExitStatus> {
    let (program, arguments) = command.split_first().context("there is no command")?;
    Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", config)
        .env("KUBECACHEDIR", cache)
        // A proxy of the network cannot reach this machine's loopback.
        .env("NO_PROXY", "127.0.0.1")
        .status()
        .with_context(|| format!("cannot run {program}"))
}

/// Returns the command for the script, without the directory of the program.
fn about(command: &[String]) -> String {
    let mut words = command.to_vec();
    if let Some(program) = words.first_mut() {
        let name = Path::new(program.as_str()).file_name();
        *program = name.unwrap_or_default().to_string_lossy().into_owned();
    }
    words.join(" ")
}

fn kubeconfig(server: &str, namespace: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "record",
        "clusters": [{"name": "record", "cluster": {"server": server}}],
        "contexts": [{
            "name": "record",
            "context": {"cluster": "record", "namespace": namespace, "user": "record"},
        }],
        // The proxy adds the token; without any user, kubectl asks for a name and a password after
        // a refusal.
        "users": [{"name": "record", "user": {"token": "record"}}],
    })
    .to_string()
}

/// Returns the exit code as a shell does: 128 plus the signal's number for a signal.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Temporary directory, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("opkit-record-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
