//! `cargo xtask diff`: the requests of the differential suite, sent to a real API server.
//!
//! With `--record` its answers become the recordings that `cargo test -p differential` compares the
//! embedded server with; without, the differences to the recordings are printed, which shows what a
//! new version of Kubernetes changes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use differential::{Recording, Suite, compare, read_recording, write_recording};

use crate::curl::Target;

/// Which server, and what to do with its answers. It must be a fresh one without controllers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Replace the recordings by what the server answers.
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    target: Target,
    /// Only the scripts with these names.
    #[arg(long)]
    only: Vec<String>,
    /// The folder of the suite.
    #[arg(long, default_value = "tests/differential")]
    suite: PathBuf,
}

/// Runs every script, and keeps or compares the answers.
pub(crate) fn run(args: &Args) -> Result<()> {
    let suite = Suite::read(&args.suite)?;
    let server = args.target.server()?;
    let version = server.version()?;
    let (mut scripts, mut requests, mut differences) = (0, 0, 0);
    for script in &suite.scripts {
        if !args.only.is_empty() && !args.only.contains(&script.name) {
            continue;
        }
        let answers = differential::run(script, &server)?;
        scripts += 1;
        requests += answers.len();
        if args.record {
            let recording = Recording {
                server: version.clone(),
                answers,
            };
            write_recording(&suite.folder, &script.name, &recording)?;
            continue;
        }
        let recorded = read_recording(&suite.folder, &script.name)?;
        for difference in compare(script, &recorded.answers, &answers)? {
            differences += 1;
            println!("{difference}");
        }
    }
    println!("{requests} requests in {scripts} scripts to {version}");
    ensure!(
        differences == 0,
        "{differences} answers differ from the recordings"
    );
    if args.record {
        forget(&suite)?;
    }
    Ok(())
}

/// Removes the recordings of scripts that are gone.
fn forget(suite: &Suite) -> Result<()> {
    let folder = suite.folder.join("recordings");
    for entry in std::fs::read_dir(&folder).context("cannot list the recordings")? {
        let path = entry?.path();
        let of = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
        let name = of(&path).unwrap_or_default();
        if !suite.scripts.iter().any(|script| script.name == name) {
            std::fs::remove_file(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}
