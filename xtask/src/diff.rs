//! `cargo xtask diff`: sends the requests of the differential suite to a real API server.
//!
//! With `--record` its responses become the recordings that `cargo test -p differential` compares
//! the embedded server with; without, the differences from the recordings are printed, which shows
//! the changes of a new version of Kubernetes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use differential::{Recording, Suite, compare, read_recording, write_recording};

use crate::curl::Target;

/// Server, which must be new and without controllers, and use of its responses.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Replace the recordings by the server's responses
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    target: Target,
    /// Run only the scripts with these names
    #[arg(long)]
    only: Vec<String>,
    /// Directory of the suite
    #[arg(long, default_value = "tests/differential")]
    suite: PathBuf,
}

/// Runs every script, and stores or compares the responses.
pub(crate) fn run(args: &Args) -> Result<()> {
    let suite = Suite::read(&args.suite)?;
    let server = args.target.server()?;
    let version = server.version()?;
    let (mut scripts, mut requests, mut differences) = (0, 0, 0);
    for script in &suite.scripts {
        if !args.only.is_empty() && !args.only.contains(&script.name) {
            continue;
        }
        let responses = differential::run(script, &server)?;
        scripts += 1;
        requests += responses.len();
        if args.record {
            let recording = Recording {
                server: version.clone(),
                responses,
            };
            write_recording(&suite.folder, &script.name, &recording)?;
            continue;
        }
        let recorded = read_recording(&suite.folder, &script.name)?;
        for difference in compare(script, &recorded.responses, &responses)? {
            differences += 1;
            println!("{difference}");
        }
    }
    println!("{requests} requests in {scripts} scripts to {version}");
    ensure!(
        differences == 0,
        "{differences} responses differ from the recordings"
    );
    if args.record {
        delete_obsolete(&suite)?;
    }
    Ok(())
}

/// Deletes the recordings of scripts that no longer exist.
fn delete_obsolete(suite: &Suite) -> Result<()> {
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
