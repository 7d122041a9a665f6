//! `opkit plan`: what a deployment would change, without changing it: the objects of the operator,
//! and then the objects that the new operator reconciles.

mod operator;
mod text;

use anyhow::Result;
use opkit_debug::OperatorPlan;
use opkit_deploy::{Deployer, Plan};
use serde::Serialize;

use crate::connection::ClusterArgs;
use crate::deploy::{
    OperatorArgs, OutputFormat, Printer, RenderArgs, is_local, print, release, show,
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
    /// Show only the objects that `deploy` applies, and do not run the operator
    #[arg(long)]
    cluster_only: bool,
    /// Exit 2 if there are changes, and 1 if the operator did not reconcile all objects; an
    /// operator whose CRD is one of the changes need not
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
    /// `None` if the operator was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<OperatorPlan>,
    /// What the plan of the operator cannot show before the deployment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Planned {
    fn has_changes(&self) -> bool {
        let operator = self.operator.as_ref();
        !self.cluster.changes.is_empty() || operator.is_some_and(|it| !it.changes.is_empty())
    }

    /// Reports whether the operator has reconciled all objects, if it was asked to. An operator
    /// that is not run because the deployment adds a CRD or a version counts as complete: that is a
    /// change, which is listed.
    fn is_complete(&self) -> bool {
        let is_expected = operator::missing_version(&self.cluster).is_some();
        self.operator.as_ref().is_none_or(|it| {
            let is_run = it.refused.is_none() || is_expected;
            is_run && it.failures.is_empty() && !it.is_unfinished
        })
    }
}

impl PlanArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        // Standard output has only the plan.
        let printer = Printer::new(true);
        let cluster = self.cluster.connect().await?;
        show(&cluster, &printer).await?;
        let built = self.operator.build_for(&self.render, &printer).await?;
        let release = release(&built, &self.render, is_local(&cluster))?;
        let plan = Deployer::new(cluster.client.clone()).plan(&release).await?;
        if self.output.is_none() {
            output::write(&text::cluster(&plan));
        }
        let operator = match self.cluster_only {
            true => None,
            false => Some(operator::plan(self, &built, &plan).await?),
        };
        let is_run = operator.as_ref().is_some_and(|it| it.refused.is_none());
        let planned = Planned {
            notes: match is_run {
                true => operator::notes(&plan),
                false => Vec::new(),
            },
            cluster: plan,
            operator,
        };
        match (self.output, &planned.operator) {
            (Some(format), _) => print(format, &planned)?,
            (None, Some(operator)) => {
                output::write(&text::operator(operator));
                output::write(&text::notes(&planned.notes));
            }
            (None, None) => {}
        }
        match (self.exit_code, planned.is_complete(), planned.has_changes()) {
            (true, false, _) => Err(exit::Printed(1).into()),
            (true, true, true) => Err(exit::Printed(2).into()),
            _ => Ok(()),
        }
    }
}
