//! `opkit upgrade`.

use anyhow::Result;
use clap::Args;
use opkit_scaffold::Upgrade;

use super::library::Library;
use super::{ChangeArgs, change, project};

/// Arguments of `opkit upgrade`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  opkit upgrade --dry-run
  opkit upgrade --opkit version=0.2      # from a checkout to the registry")]
pub(crate) struct UpgradeArgs {
    /// Library to move to: path=DIRECTORY, git=URL or version=VERSION [default: the source of the
    /// project, in the version of this command]
    #[arg(long, value_name = "SOURCE")]
    opkit: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(args: &UpgradeArgs) -> Result<()> {
    let to = match &args.opkit {
        Some(choice) => Some(Library::choose(Some(choice), &project()?)?.dependency),
        None => None,
    };
    // A member of a workspace has none of its own.
    let lock = std::fs::read_to_string(project()?.join("Cargo.lock"));
    let command = Upgrade {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        to,
        locked: lock.ok().and_then(|lock| Upgrade::locked_version(&lock)),
    };
    change(&args.change, true, |tree| command.apply(tree))
}
