//! `opkit plan`: what a deployment would change, without changing it.

mod text;

use anyhow::Result;
use opkit_deploy::{Deployer, Plan};
use serde::Serialize;

use crate::deploy::{
    ClusterArgs, OperatorArgs, OutputFormat, Printer, RenderArgs, is_local, print, release, show,
};
use crate::{exit, output};

/// What would be deployed, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit plan
  opkit plan --image ghcr.io/acme/robot-operator:1.0.0 --context staging
  opkit plan --exit-code --output json    # in CI: exits 2 if there are changes")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    render: RenderArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Exit 2 if there are changes
    #[arg(long)]
    exit_code: bool,
    /// Print the result for a script
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// The whole plan, for scripts.
#[derive(Debug, Serialize)]
struct Planned {
    cluster: Plan,
}

impl PlanArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        // Standard output has only the plan.
        let printer = Printer::new(true);
        let cluster = self.cluster.connect().await?;
        show(&cluster, &printer).await?;
        let built = self.operator.build(&self.render.arguments, &printer);
        let release = release(&built.await?, &self.render, is_local(&cluster))?;
        let plan = Deployer::new(cluster.client.clone()).plan(&release).await?;
        let planned = Planned { cluster: plan };
        match self.output {
            Some(format) => print(format, &planned)?,
            None => output::write(&text::cluster(&planned.cluster)),
        }
        match self.exit_code && !planned.cluster.changes.is_empty() {
            true => Err(exit::Printed(2).into()),
            false => Ok(()),
        }
    }
}
