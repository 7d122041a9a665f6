//! `opkit doctor`: what is wrong with an operator in a cluster.

use std::time::Duration;

use anyhow::Result;
use opkit_doctor::{Doctor, Facts, OperatorManifests};

use crate::connection::ClusterArgs;
use crate::deploy::{BuiltOperator, OperatorArgs, OutputFormat, Printer, RenderArgs, print};
use crate::exit::Unsuccessful;
use crate::output;

/// Number of times that objects are read to find loops.
const LOOKS: u32 = 5;

/// The operator, its settings, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit doctor
  opkit doctor -p robot-operator --context staging
  opkit doctor --output json | jq -r '.findings[].message'")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    render: RenderArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Time in which objects that change again and again are looked for, in seconds; 0 does not
    /// look for them
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(..=3600))]
    loops: u32,
    /// Print the findings as one document [default: lines]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

impl DoctorArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        // Standard output has only the report.
        let printer = Printer::new(true);
        let cluster = self.cluster.connect().await?;
        let built = self.operator.build_for(&self.render, &printer).await?;
        let manifests = manifests(&built, &self.render)?;
        let doctor = Doctor::new(cluster.client.clone());
        let mut facts = doctor.read(manifests).await?;
        if let Some(context) = &cluster.context {
            facts.cluster = format!("{context}, {}", facts.cluster);
        }
        self.look(&doctor, &mut facts).await;
        let report = facts.examine();
        match self.output {
            Some(format) => print(format, &report)?,
            None => {
                let text = report.to_string();
                let lines = text.lines().map(|line| output::plain(line) + "\n");
                output::write(&lines.collect::<String>());
            }
        }
        match report.is_failure() {
            true => Err(Unsuccessful.into()),
            false => Ok(()),
        }
    }

    /// Reads the objects of the operator's kinds several times.
    async fn look(&self, doctor: &Doctor, facts: &mut Facts) {
        if self.loops == 0 || facts.instances.is_empty() {
            return;
        }
        // One look is in the facts already.
        let pauses = LOOKS - 1;
        let pause = Duration::from_secs(self.loops.into()) / pauses;
        for _ in 0..pauses {
            tokio::time::sleep(pause).await;
            doctor.look(facts).await;
        }
    }
}

/// Returns the manifests with the same settings as those of a deployment.
fn manifests(built: &BuiltOperator, render: &RenderArgs) -> Result<OperatorManifests> {
    let settings = built.settings(render)?;
    let model = &built.model;
    let namespace = settings.namespace.as_deref().unwrap_or(&model.namespace);
    let mut manifests = OperatorManifests::new(&model.operator, &model.version, namespace);
    let objects = model.objects(&settings).into_iter();
    manifests.objects = objects.map(|it| it.object).collect();
    manifests.runtime_objects = model.runtime_objects(&settings);
    Ok(manifests)
}
