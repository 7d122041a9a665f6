//! `opkit crd`: commands about the CRDs of an operator.

mod check;
mod git;
mod input;
mod source;

use anyhow::Result;

pub(crate) use input::CrdArgs;
pub(crate) use source::{parse, read};

/// Commands about CRDs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum CrdCommand {
    /// Check whether the CRDs can replace those of a file, a git revision or a cluster, by the
    /// rules of OLM v1; exit 1 if not
    Check(check::CheckArgs),
}

impl CrdCommand {
    pub(crate) async fn run(&self) -> Result<()> {
        match self {
            Self::Check(args) => args.run().await,
        }
    }
}
