//! `cargo xtask release`: everything that a release consists of, without publishing it.
//!
//! It writes an archive with the statically linked command for each target, their checksums and the
//! section of the changelog, and packages all crates in the order in which they would be published.
//! Nothing in the repository changes.

mod archive;
mod changelog;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::build;

/// What to release.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory for the archives and the changelog section [default: dist in the target directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Target to build the command for; may be repeated [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Package the crates without compiling each package
    #[arg(long)]
    no_verify: bool,
}

/// Builds the archives and the changelog section, and packages the crates.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let root = metadata.workspace_root.as_std_path();
    let target = metadata.target_directory.as_std_path();
    ensure_committed(root)?;
    let cli = metadata.packages.iter().find(|it| it.name == "opkit-cli");
    let version = cli
        .context("there is no package opkit-cli")?
        .version
        .to_string();
    let out = args.out.clone().unwrap_or_else(|| target.join("dist"));
    std::fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;

    let text = std::fs::read_to_string(root.join("CHANGELOG.md")).context("no changelog")?;
    let section = changelog::section(&text, &version)?;
    let path = out.join(format!("changelog-{version}.md"));
    std::fs::write(&path, section).with_context(|| format!("cannot write {}", path.display()))?;
    println!("changelog   {}", path.display());

    let host = build::host()?;
    let targets = match &args.target[..] {
        [] => std::slice::from_ref(&host),
        targets => targets,
    };
    let mut archives = Vec::new();
    for triple in targets {
        let program = command(root, target, triple)?;
        let size = std::fs::metadata(&program).context("the command was not built")?;
        println!("command     {triple}: {} bytes", size.len());
        let archive = archive::Archive {
            name: format!("opkit-{version}-{triple}"),
            program: &program,
            // The command itself writes its manual and completions.
            is_runnable: *triple == host,
        };
        archives.push(archive.write(root, &out)?);
    }
    let sums = archive::checksums(&archives)?;
    std::fs::write(out.join("SHA256SUMS"), &sums).context("cannot write the checksums")?;
    print!("{sums}");

    let order = package(root, args.no_verify)?;
    println!("crates      {} packages, in this order:", order.len());
    for name in order {
        println!("            {name}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports an error if files differ from the commit: the release would not be that of its tag.
fn ensure_committed(root: &Path) -> Result<()> {
    let mut command = Command::new("git");
    command.args(["status", "--porcelain"]).current_dir(root);
    let output = command.output().context("cannot run git")?;
    ensure!(output.status.success(), "git status failed");
    let changed = String::from_utf8_lossy(&output.stdout).lines().count();
    ensure!(
        changed == 0,
        "{changed} files are not committed: commit them before a release"
    );
    Ok(())
}

/// Builds the command without symbols, linked statically.
fn command(root: &Path, target: &Path, triple: &str) -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--package", "opkit-cli", "--bin", "opkit"])
        // With a target, the flags do not apply to build scripts and macros.
        .args(["--target", triple])
        .arg("--target-dir")
        .arg(target)
        .env("RUSTFLAGS", build::STATIC_FLAGS)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .current_dir(root)
        .status()
        .context("cannot run cargo build")?;
    ensure!(status.success(), "cargo build of opkit for {triple} failed");
    let name = format!("opkit{}", std::env::consts::EXE_SUFFIX);
    Ok(target.join(triple).join("release").join(name))
}

/// Packages all crates as `cargo publish` would upload them, and returns their order.
fn package(root: &Path, no_verify: bool) -> Result<Vec<String>> {
    let mut command = Command::new("cargo");
    command
        .args(["publish", "--workspace", "--dry-run", "--locked"])
        .current_dir(root);
    if no_verify {
        command.arg("--no-verify");
    }
    let output = command.output().context("cannot run cargo publish")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("cargo publish --dry-run failed:\n{text}");
    }
    Ok(uploads(&text))
}

/// Returns the crates that cargo uploads, in its order.
fn uploads(output: &str) -> Vec<String> {
    let lines = output.lines();
    let uploads = lines.filter_map(|line| line.trim().strip_prefix("Uploading "));
    let names = uploads.filter_map(|upload| upload.split_once(" ("));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_read_from_the_output_of_cargo() {
        let output = "   Packaging opkit v0.1.0 (/opkit/crates/opkit)\n   \
                      Uploading opkit-syntax v0.1.0 (/opkit/crates/syntax)\n\
                      warning: aborting upload due to dry run\n   \
                      Uploading opkit v0.1.0 (/opkit/crates/opkit)\n";
        assert_eq!(uploads(output), ["opkit-syntax v0.1.0", "opkit v0.1.0"]);
    }
}
