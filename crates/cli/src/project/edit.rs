//! `opkit edit`.

use anyhow::Result;
use clap::{Args, Subcommand};
use opkit_scaffold::{Edit, EditStorage};

use super::{ChangeArgs, change};

/// Arguments of `opkit edit`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  opkit edit --namespaced
  opkit edit --image registry.example.com/team/robot-operator
  opkit edit storage v1 --kind Robot"
)]
pub(crate) struct EditArgs {
    #[command(subcommand)]
    command: Option<EditCommand>,
    /// Watch one namespace; `--namespaced=false` watches the whole cluster
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,
    /// Domain of the groups of kinds that are added later
    #[arg(long)]
    domain: Option<String>,
    /// Image of the operator, without a tag
    #[arg(long)]
    image: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Subcommand)]
enum EditCommand {
    /// Change the version that objects of a kind are stored in
    #[command(after_help = "Example:\n  opkit edit storage v1 --kind Robot")]
    Storage {
        /// Version, such as v1
        version: String,
        /// Kind, such as Robot
        #[arg(long)]
        kind: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

pub(crate) fn run(args: EditArgs) -> Result<()> {
    if let Some(EditCommand::Storage {
        version,
        kind,
        change: options,
    }) = args.command
    {
        let command = EditStorage { kind, version };
        return change(&options, true, |tree| command.apply(tree));
    }
    let command = Edit {
        namespaced: args.namespaced,
        domain: args.domain,
        image: args.image,
    };
    change(&args.change, true, |tree| command.apply(tree))
}
