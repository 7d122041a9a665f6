//! `opkit new` and `opkit init`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use opkit_scaffold::{License, NewProject};

use super::library::Library;
use super::{ImageArgs, Output, report};

const NEW_EXAMPLE: &str = "Examples:
  opkit new robot-operator --domain example.com --kind Robot
  opkit new nginx-operator --image nginx:1.27 --port 80
  cd nginx-operator && opkit dev";

const INIT_EXAMPLE: &str = "Example:
  mkdir robot-operator && cd robot-operator
  opkit init --domain example.com";

/// Arguments of `opkit new`.
#[derive(Debug, Args)]
#[command(after_help = NEW_EXAMPLE)]
pub(crate) struct NewArgs {
    /// Name of the operator, and of the directory to create
    name: String,
    #[command(flatten)]
    project: ProjectArgs,
}

/// Arguments of `opkit init`.
#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLE)]
pub(crate) struct InitArgs {
    /// Name of the operator [default: the name of the directory]
    name: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Debug, Args)]
struct ProjectArgs {
    /// Domain of the groups of its kinds [default: my.domain]
    #[arg(long)]
    domain: Option<String>,
    /// License of the project
    #[arg(long, value_enum, default_value_t, value_name = "LICENSE")]
    license: LicenseArg,
    /// Owner of the copyright
    #[arg(long)]
    owner: Option<String>,
    /// First kind [default: from the name, such as Robot for robot-operator]
    #[arg(long)]
    kind: Option<String>,
    /// Group of the kind, without the domain [default: the kind in lower case]
    #[arg(long)]
    group: Option<String>,
    /// Version of the kind [default: v1alpha1]
    #[arg(long)]
    version: Option<String>,
    /// Image that each object runs: the controller keeps a Deployment of it, and a Service if the
    /// object has a port
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    image_options: ImageArgs,
    /// Watch one namespace, not the whole cluster
    #[arg(long)]
    namespaced: bool,
    /// Library to depend on: path=DIRECTORY, git=URL or version=VERSION [default: the checkout that
    /// this command was built from, if it exists]
    #[arg(long, value_name = "SOURCE")]
    opkit: Option<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LicenseArg {
    Apache2,
    Mit,
    #[default]
    None,
}

/// Creates a project in a new directory.
pub(crate) fn new(args: NewArgs) -> Result<()> {
    let here = current()?;
    let directory = here.join(&args.name);
    if fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!(
            "{} is not empty: `opkit init` creates a project in it (nothing was changed)",
            args.name
        );
    }
    let next = format!("cd {} && opkit dev", args.name);
    create(args.name, &directory, args.project, &next)
}

/// Creates a project in the current directory.
pub(crate) fn init(args: InitArgs) -> Result<()> {
    let here = current()?;
    if here.join("Cargo.toml").exists() {
        bail!(
            "there is a Cargo.toml here: `opkit add api` adds a kind to a project (nothing was changed)"
        );
    }
    let directory_name = || {
        here.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let name = args.name.or_else(directory_name);
    let name = name.context("this directory has no name: add NAME")?;
    create(name, &here, args.project, "opkit dev")
}

fn current() -> Result<std::path::PathBuf> {
    std::env::current_dir().context("cannot read the current directory")
}

fn create(name: String, directory: &Path, args: ProjectArgs, next: &str) -> Result<()> {
    let library = Library::choose(args.opkit.as_deref(), directory)?;
    let year = Timestamp::now().to_zoned(TimeZone::UTC).year();
    let mut project = NewProject::new(name, library.dependency.clone(), year);
    project.domain = args.domain;
    project.license = match args.license {
        LicenseArg::Apache2 => License::Apache2,
        LicenseArg::Mit => License::Mit,
        LicenseArg::None => License::None,
    };
    project.owner = args.owner;
    project.kind = args.kind;
    project.group = args.group;
    project.version = args.version;
    project.image = args.image;
    project.image_options = args.image_options.options();
    project.namespaced = args.namespaced;
    project.is_workspace = directory.ancestors().skip(1).any(is_workspace);
    project.lock_file = library.lock_file();
    // Files that a new repository has already stay as they are.
    let kept = |path: &str| {
        [".gitignore", "LICENSE", "README.md"].contains(&path) && directory.join(path).exists()
    };
    let outcome = project.apply(kept)?;
    outcome.changes.write(directory)?;
    report::created(
        &project.name,
        &outcome,
        &library.description(),
        next,
        args.output,
    )
}

/// Reports whether a directory is the root of a cargo workspace.
pub(super) fn is_workspace(directory: &Path) -> bool {
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    let mut lines = manifest.lines().map(str::trim);
    lines.any(|line| line.starts_with("[workspace]") || line.starts_with("[workspace."))
}
