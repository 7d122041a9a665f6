//! `opkit remove`.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use opkit_scaffold::{
    RemoveApi, RemoveController, RemoveTooling, RemoveVersion, RemoveWebhook, Tooling,
};

use super::{ChangeArgs, change};

/// Arguments of `opkit remove`.
#[derive(Debug, Subcommand)]
pub(crate) enum RemoveCommand {
    /// Remove a kind, with its controller, webhook, tests and samples
    #[command(after_help = "Example:\n  opkit remove api --kind Arm")]
    Api {
        /// Kind, such as Arm
        #[arg(long)]
        kind: String,
        #[command(flatten)]
        remove: RemoveArgs,
    },
    /// Remove an old version of a kind
    #[command(after_help = "Example:\n  opkit remove version v1alpha1 --kind Robot")]
    Version {
        /// Version, such as v1alpha1
        version: String,
        /// Kind, such as Robot
        #[arg(long)]
        kind: String,
        #[command(flatten)]
        remove: RemoveArgs,
    },
    /// Remove a webhook, or one of its functions
    #[command(after_help = "Example:\n  opkit remove webhook --kind Robot --defaulting")]
    Webhook {
        /// Kind, such as Robot
        #[arg(long)]
        kind: String,
        /// Group; `core` for Pods and the like
        #[arg(long)]
        group: Option<String>,
        /// Remove only the function that sets defaults
        #[arg(long)]
        defaulting: bool,
        /// Remove only the function that validates
        #[arg(long)]
        validation: bool,
        #[command(flatten)]
        remove: RemoveArgs,
    },
    /// Remove a controller
    #[command(after_help = "Example:\n  opkit remove controller --kind Robot --name scaler")]
    Controller {
        /// Kind, such as Robot
        #[arg(long)]
        kind: String,
        /// Group; `core` for Pods and the like
        #[arg(long)]
        group: Option<String>,
        /// Name of a second controller
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        remove: RemoveArgs,
    },
    /// Refused: the kinds do not move back
    #[command(hide = true)]
    TypesCrate(RemoveArgs),
    /// Remove the GitHub workflow
    #[command(after_help = "Example:\n  opkit remove ci --yes")]
    Ci(RemoveArgs),
    /// Remove the Dockerfile
    #[command(after_help = "Example:\n  opkit remove dockerfile --yes")]
    Dockerfile(RemoveArgs),
    /// Remove the development container
    #[command(after_help = "Example:\n  opkit remove devcontainer --yes")]
    Devcontainer(RemoveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Delete files without a question
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

impl RemoveArgs {
    fn tooling(&self, tooling: Tooling) -> Result<()> {
        let command = RemoveTooling { tooling };
        change(&self.change, self.yes, |tree| command.apply(tree))
    }
}

impl RemoveCommand {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Api { kind, remove } => {
                let command = RemoveApi { kind };
                change(&remove.change, remove.yes, |tree| command.apply(tree))
            }
            Self::Version {
                version,
                kind,
                remove,
            } => {
                let command = RemoveVersion { kind, version };
                change(&remove.change, remove.yes, |tree| command.apply(tree))
            }
            Self::Webhook {
                kind,
                group,
                defaulting,
                validation,
                remove,
            } => {
                let command = RemoveWebhook {
                    kind,
                    group,
                    defaulting,
                    validation,
                };
                change(&remove.change, remove.yes, |tree| command.apply(tree))
            }
            Self::Controller {
                kind,
                group,
                name,
                remove,
            } => {
                let command = RemoveController { kind, group, name };
                change(&remove.change, remove.yes, |tree| command.apply(tree))
            }
            Self::TypesCrate(_) => bail!(
                "the kinds do not move back by a command: revert the commit with the output of `opkit add types-crate` (nothing was changed)"
            ),
            Self::Ci(args) => args.tooling(Tooling::Ci),
            Self::Dockerfile(args) => args.tooling(Tooling::Dockerfile),
            Self::Devcontainer(args) => args.tooling(Tooling::Devcontainer),
        }
    }
}
