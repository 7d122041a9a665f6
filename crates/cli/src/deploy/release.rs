//! `opkit deploy` and `opkit undeploy`: an operator in a cluster.

use std::time::Duration;

use anyhow::{Result, bail};
use opkit_deploy::{Deployed, Deployer, Release};

use super::cluster::{is_local, show};
use super::operator::{BuiltOperator, OperatorArgs, RenderArgs, is_for_script};
use super::progress::Printer;
use super::{OutputFormat, image, print};
use crate::connection::ClusterArgs;

/// What is deployed, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit deploy --image ghcr.io/acme/robot-operator:1.0.0 --replicas 2
  opkit deploy --dry-run          # the API server validates everything and stores nothing
  opkit deploy --rollback         # back to the release before
  opkit deploy --rollback=3       # back to revision 3")]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    render: RenderArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Go back to a revision [default: the one before the current one]; the operator is not built
    #[arg(
        long, value_name = "REVISION", num_args = 0..=1, require_equals = true,
        conflicts_with_all = [
            "image", "replicas", "role_name", "with", "max_description", "arguments",
        ],
    )]
    rollback: Option<Option<u64>>,
    /// Name of the operator to roll back, if it is not that of its package
    #[arg(long, value_name = "NAME", requires = "rollback")]
    operator_name: Option<String>,
    /// Let the API server validate all objects, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Time limit of each wait, in seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// Print the result for a script
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// Operator to remove, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit undeploy
  opkit undeploy --operator-name robot-operator --namespace robots    # without the sources")]
pub(crate) struct UndeployArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Name of the operator, if it is not that of its package
    #[arg(long, value_name = "NAME")]
    operator_name: Option<String>,
    /// Namespace of the operator [default: `namespace` of [package.metadata.opkit], or
    /// NAME-system]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Time limit of each wait, in seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    /// Print the result for a script
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

impl DeployArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let printer = Printer::new(is_for_script(self.output));
        let cluster = self.cluster.connect().await?;
        show(&cluster, &printer).await?;
        let deployer = Deployer::new(cluster.client.clone())
            .dry_run(self.dry_run)
            .timeout(Duration::from_secs(self.timeout));
        let mut report = |progress| printer.show(&progress);
        let deployed = match self.rollback {
            Some(wanted) => {
                let namespace = self.render.namespace.as_deref();
                let name = self.operator_name.as_deref();
                let identity = self.operator.identity(name, namespace, &printer);
                let (operator, namespace) = identity.await?;
                let rollback = deployer.rollback(&operator, &namespace, wanted, &mut report);
                printer.wait_for(rollback).await?
            }
            None => {
                let built = self.operator.build_for(&self.render, &printer);
                let release = release(&built.await?, &self.render, is_local(&cluster))?;
                let deploy = deployer.deploy(&release, &mut report);
                printer.wait_for(deploy).await?
            }
        };
        match self.output {
            Some(format) => print(format, &deployed),
            None => {
                printer.end(&self.summary(&deployed));
                Ok(())
            }
        }
    }

    fn summary(&self, deployed: &Deployed) -> String {
        let verb = match (self.dry_run, self.rollback.is_some()) {
            (true, _) => "would deploy",
            (false, true) => "rolled back to",
            (false, false) => "deployed",
        };
        let back = match deployed.revision > 1 && !self.dry_run {
            true => " (back: opkit deploy --rollback)",
            false => "",
        };
        format!(
            "{verb} {} {} as revision {}: {} created, {} changed, {} deleted, {} unchanged{back}",
            deployed.operator,
            deployed.version,
            deployed.revision,
            deployed.created.len(),
            deployed.changed.len(),
            deployed.deleted.len(),
            deployed.unchanged
        )
    }
}

/// Returns the release of a built operator. Nodes of a cluster on another machine can only pull an
/// image that names a registry.
pub(crate) fn release(built: &BuiltOperator, args: &RenderArgs, is_local: bool) -> Result<Release> {
    let settings = built.settings(args)?;
    let chosen = settings.image.clone().unwrap_or_default();
    if !is_local && !image::has_registry(&chosen) {
        bail!(
            "the image {chosen} names no registry, so the nodes of this cluster cannot pull it: use --image REGISTRY/NAME:TAG, or set image in [package.metadata.opkit]"
        );
    }
    let model = &built.model;
    let namespace = settings.namespace.as_deref().unwrap_or(&model.namespace);
    let mut release = Release::new(&model.operator, &model.version, namespace);
    for it in model.objects(&settings) {
        release.add(it.object);
    }
    release.runtime_objects = model.runtime_objects(&settings);
    Ok(release)
}

impl UndeployArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let printer = Printer::new(is_for_script(self.output));
        let cluster = self.cluster.connect().await?;
        show(&cluster, &printer).await?;
        let (name, namespace) = (self.operator_name.as_deref(), self.namespace.as_deref());
        let identity = self.operator.identity(name, namespace, &printer);
        let (operator, namespace) = identity.await?;
        let deployer = Deployer::new(cluster.client)
            .dry_run(self.dry_run)
            .timeout(Duration::from_secs(self.timeout));
        let mut report = |progress| printer.show(&progress);
        let undeploy = deployer.undeploy(&operator, &namespace, &mut report);
        let undeployed = printer.wait_for(undeploy).await?;
        if let Some(format) = self.output {
            return print(format, &undeployed);
        }
        let verb = if self.dry_run {
            "would undeploy"
        } else {
            "undeployed"
        };
        let deleted = undeployed.deleted.len();
        let (gone, kept) = (&undeployed.crds.deleted, &undeployed.crds.kept);
        let crds = format!("{} CRDs deleted, {} kept", gone.len(), kept.len());
        printer.end(&format!(
            "{verb} {operator}: {deleted} objects deleted, {crds}"
        ));
        Ok(())
    }
}
