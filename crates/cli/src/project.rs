//! Commands on the source of a project: `new`, `init`, `import`, `add`, `edit`, `remove` and
//! `upgrade`.
//!
//! The library `opkit-scaffold` computes all changes; this reads arguments, asks, and prints.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use opkit_scaffold::{Error, ImageOptions, Outcome, Tree};

use crate::exit::WrongUsage;

mod add;
mod edit;
mod import;
mod library;
mod new;
mod remove;
mod report;
mod upgrade;

pub(crate) use add::AddCommand;
pub(crate) use edit::{EditArgs, run as edit};
pub(crate) use import::{ImportArgs, run as import};
pub(crate) use new::{InitArgs, NewArgs, init, new};
pub(crate) use remove::RemoveCommand;
pub(crate) use upgrade::{UpgradeArgs, run as upgrade};

/// Format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Lines to read
    #[default]
    Text,
    /// One JSON object with the files that were created, changed and deleted
    Json,
}

/// How the container of an image runs.
#[derive(Clone, Debug, Args)]
struct ImageArgs {
    /// Port that the image listens on, for the sample
    #[arg(long, value_name = "PORT", requires = "image")]
    port: Option<u16>,
    /// Command of the container, in words separated by commas [default: that of the image]
    #[arg(long, value_name = "WORDS", requires = "image", value_delimiter = ',')]
    container_command: Vec<String>,
    /// ID of the user that the container runs as [default: that of the image]
    #[arg(long, value_name = "ID", requires = "image")]
    run_as_user: Option<u32>,
}

impl ImageArgs {
    fn options(self) -> ImageOptions {
        let mut options = ImageOptions::default();
        options.port = self.port;
        options.command = self.container_command;
        options.run_as_user = self.run_as_user;
        options
    }
}

/// Options of all commands that change a project.
#[derive(Clone, Debug, Args)]
struct ChangeArgs {
    /// Print the changes as a diff, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

/// Returns the exit code of a failed command: 2 for an argument that is not valid.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let usage =
        error.is::<WrongUsage>() || error.downcast_ref::<Error>().is_some_and(Error::is_usage);
    ExitCode::from(if usage { 2 } else { 1 })
}

/// Returns the directory of the package around the current directory.
fn project() -> Result<PathBuf> {
    let here = std::env::current_dir().context("cannot read the current directory")?;
    for directory in here.ancestors() {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
        if manifest.lines().any(|line| line.trim() == "[package]") {
            // The crate of the kinds belongs to the operator above it.
            let above = directory
                .parent()
                .filter(|above| is_types_crate(above, directory));
            return Ok(above.unwrap_or(directory).to_owned());
        }
    }
    bail!(
        "there is no Cargo.toml with a [package] in {} or above: run this in the directory of an operator, or create one with `opkit new NAME`",
        here.display()
    )
}

/// Reports whether a directory is that of the crate with the kinds of the operator above it.
fn is_types_crate(operator: &Path, directory: &Path) -> bool {
    let is_types = directory.file_name().is_some_and(|name| name == "types");
    let tree = Tree::read(operator);
    is_types && tree.is_ok_and(|tree| tree.has_types_crate())
}

/// Runs a command on the project around the current directory.
fn change(
    args: &ChangeArgs,
    is_confirmed: bool,
    command: impl FnOnce(&Tree) -> opkit_scaffold::Result<Outcome>,
) -> Result<()> {
    let directory = project()?;
    let outcome = command(&Tree::read(&directory)?)?;
    if args.dry_run {
        crate::output::write(&outcome.changes.diff());
        return Ok(());
    }
    let deleted = outcome.changes.iter().filter(|it| it.after.is_none());
    let deleted: Vec<&str> = deleted.map(|it| it.path.as_str()).collect();
    if !deleted.is_empty() && !is_confirmed {
        let files = deleted.join(", ");
        match ask(&format!("delete {files}"))? {
            Some(true) => {}
            Some(false) => bail!("nothing was changed"),
            None => bail!("this deletes {files}: add --yes (nothing was changed)"),
        }
    }
    outcome.changes.write(&directory)?;
    report::changed(&outcome, args.output)
}

/// Asks a question on the terminal. Returns `None` if there is no terminal.
fn ask(question: &str) -> Result<Option<bool>> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(None);
    }
    loop {
        write!(stderr, "{question} [y/n] ").and_then(|()| stderr.flush())?;
        let mut line = String::new();
        if stdin.lock().read_line(&mut line)? == 0 {
            bail!("no answer (nothing was changed)");
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(true)),
            "n" | "no" => return Ok(Some(false)),
            _ => {}
        }
    }
}
