//! `opkit import`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use opkit_scaffold::{Import, KubebuilderProject};

use super::library::Library;
use super::new::is_workspace;
use super::{ChangeArgs, report};

/// Arguments of `opkit import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  opkit import ../memcached-operator --out memcached
  opkit import . --dry-run
  cd memcached && cargo test")]
pub(crate) struct ImportArgs {
    /// Directory of the kubebuilder project, with its PROJECT file; nothing in it is changed
    directory: PathBuf,
    /// Directory to create [default: the name of the project in the current directory; if that is
    /// the kubebuilder project or in it, its path with -opkit]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Library to depend on: path=DIRECTORY, git=URL or version=VERSION [default: the checkout that
    /// this command was built from, if it exists]
    #[arg(long, value_name = "SOURCE")]
    opkit: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(args: &ImportArgs) -> Result<()> {
    let project = KubebuilderProject::read(&args.directory)?;
    let here = std::env::current_dir().context("cannot read the current directory")?;
    let shown = match &args.out {
        Some(out) => out.clone(),
        None => default_out(&args.directory, &here, project.name())?,
    };
    let out = here.join(&shown);
    if fs::symlink_metadata(&out).is_ok_and(|it| !it.is_dir())
        || fs::read_dir(&out).is_ok_and(|mut entries| entries.next().is_some())
    {
        bail!(
            "{} is not empty: choose another directory with --out (nothing was changed)",
            shown.display()
        );
    }
    let library = Library::choose(args.opkit.as_deref(), &out)?;
    let mut import = Import::new(library.dependency.clone());
    import.is_workspace = out.ancestors().skip(1).any(is_workspace);
    import.lock_file = library.lock_file();
    let imported = import.apply(&project)?;
    if args.change.dry_run {
        crate::output::write(&imported.outcome.changes.diff());
        return Ok(());
    }
    imported.outcome.changes.write(&out)?;
    let next = format!("cd {} && cargo test", shown.display());
    report::imported(
        project.name(),
        &imported,
        &library.description(),
        &next,
        args.change.output,
    )
}

/// Returns the directory to create, which is never in the kubebuilder project.
fn default_out(project: &Path, here: &Path, name: &str) -> Result<PathBuf> {
    let failed = || format!("cannot read {}", project.display());
    let project = project.canonicalize().with_context(failed)?;
    let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    if !here.join(name).starts_with(&project) {
        return Ok(PathBuf::from(name));
    }
    let mut beside = project.file_name().unwrap_or_default().to_owned();
    beside.push("-opkit");
    // Paths from the current directory are shorter.
    Ok(match project.parent() {
        Some(parent) if parent == here => PathBuf::from(beside),
        Some(_) if project == here => Path::new("..").join(beside),
        Some(parent) => parent.join(beside),
        None => PathBuf::from(beside),
    })
}
