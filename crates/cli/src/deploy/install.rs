//! `opkit install` and `opkit uninstall`: the CRDs of an operator.

use anyhow::Result;
use opkit_deploy::{Change, Deployer};
use opkit_manifests::{Part, Settings};
use serde_json::{Value, json};

use super::cluster::show;
use super::operator::{DescriptionArgs, OperatorArgs, is_for_script};
use super::progress::Printer;
use super::{OutputFormat, print};
use crate::connection::ClusterArgs;

/// CRDs to install, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit install
  opkit install --package robot-operator --context staging --dry-run")]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    crds: OwnCrdArgs,
    #[command(flatten)]
    descriptions: DescriptionArgs,
}

/// CRDs of an operator, the cluster, and the output.
#[derive(Debug, clap::Args)]
struct OwnCrdArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Namespace of the operator, whose webhook converts the objects of kinds with several versions
    /// [default: `namespace` of [package.metadata.opkit], or NAME-system]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Let the API server validate the CRDs, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result for a script
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

/// CRDs to delete, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit uninstall
  opkit uninstall --force    # deletes all robots, too")]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    crds: OwnCrdArgs,
    /// Delete the CRDs even if objects of their kinds exist; the objects are deleted with them
    #[arg(long)]
    force: bool,
}

impl InstallArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let printer = Printer::new(is_for_script(self.crds.output));
        let (deployer, crds) = self
            .crds
            .prepare(Some(&self.descriptions), &printer)
            .await?;
        let mut report = |progress| printer.show(&progress);
        let install = deployer.install(&crds, &mut report);
        let changes = printer.wait_for(install).await?;
        if let Some(format) = self.crds.output {
            let crds = changes.iter();
            let crds: Vec<_> = crds
                .map(|(name, change)| json!({"name": name, "change": change}))
                .collect();
            return print(format, &json!({"crds": crds, "dryRun": self.crds.dry_run}));
        }
        let changed = changes
            .iter()
            .filter(|(_, change)| *change != Change::Unchanged);
        let (changed, all) = (changed.count(), changes.len());
        let dry = if self.crds.dry_run { " (dry run)" } else { "" };
        printer.end(&format!("installed {all} CRDs, {changed} changed{dry}"));
        Ok(())
    }
}

impl OwnCrdArgs {
    /// Connects to the cluster, and returns the CRDs for it.
    async fn prepare(
        &self,
        descriptions: Option<&DescriptionArgs>,
        printer: &Printer,
    ) -> Result<(Deployer, Vec<Value>)> {
        let cluster = self.cluster.connect().await?;
        show(&cluster, printer).await?;
        let mut built = self.operator.build(&[], printer).await?;
        if let Some(descriptions) = descriptions {
            descriptions.apply(&mut built.model);
        }
        built.check()?;
        let package = built.package.as_ref();
        let declared = package.and_then(|package| package.settings.namespace.clone());
        let mut settings = Settings::default();
        settings.namespace = self.namespace.clone().or(declared);
        let crds = built.model.objects(&settings).into_iter();
        let crds = crds.filter(|it| it.part == Part::Crd);
        let crds = crds.map(|it| it.object).collect();
        Ok((Deployer::new(cluster.client).dry_run(self.dry_run), crds))
    }
}

impl UninstallArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let printer = Printer::new(is_for_script(self.crds.output));
        let (deployer, crds) = self.crds.prepare(None, &printer).await?;
        let mut report = |progress| printer.show(&progress);
        let uninstall = deployer.uninstall(&crds, self.force, &mut report);
        let removed = printer.wait_for(uninstall).await?;
        if let Some(format) = self.crds.output {
            return print(format, &removed);
        }
        let dry = if self.crds.dry_run { " (dry run)" } else { "" };
        printer.end(&format!("deleted {} CRDs{dry}", removed.deleted.len()));
        Ok(())
    }
}
