//! `opkit run`: the operator as a process on this machine, against a cluster.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{Client, SelectedCluster};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

use super::cluster::show;
use super::conversion::refuse_conversion;
use super::operator::{BuiltOperator, OperatorArgs};
use super::progress::Printer;
use crate::connection::ClusterArgs;
use crate::signals::StopSignals;

/// Operator to run, and the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit install && opkit run
  opkit run --context staging -- --namespace robots --log-level debug")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Serve webhooks on this port; the API server must reach this machine through the Service of
    /// the webhooks [default: webhooks are off]
    #[arg(long, value_name = "PORT")]
    webhook_port: Option<u16>,
    /// Arguments of the operator
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl RunArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let mut stop = StopSignals::listen()?;
        let printer = Printer::new(true);
        let port = self.webhook_port.unwrap_or(0);
        let (cluster, built) = stop.interrupt(self.prepare(port, &printer)).await?;
        if built.model.webhook_port.is_some() && port == 0 {
            let text = "off: the API server cannot reach them on this machine (--webhook-port turns them on)";
            printer.line("webhooks", text);
        }
        let mut command = Command::new(&built.executable);
        let (flags, kubeconfig) = self.cluster.environment()?;
        command.arg("run").args(flags);
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let operator = &built.model.operator;
        printer.line("operator", &format!("{operator} runs, Ctrl-C stops it"));
        let child = command
            .args(lease_namespace(&cluster, &self.arguments))
            .arg("--webhook-port")
            .arg(port.to_string())
            .args(&self.arguments)
            .stdin(Stdio::null())
            // Ctrl-C reaches the whole process group of the terminal. The operator gets each signal
            // once, from here: a second signal stops it without its cleanup.
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child =
            child.with_context(|| format!("cannot start {}", built.executable.display()))?;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                () = stop.requested() => {
                    // The process may have ended meanwhile.
                    if let Some(id) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
                        let _ = kill_process(id, Signal::TERM);
                    }
                }
            }
        };
        let status = status.with_context(|| format!("cannot wait for {operator}"))?;
        match status.success() {
            true => Ok(()),
            false => bail!("{operator} ended with {status}: see its log above"),
        }
    }
}

impl RunArgs {
    /// Connects to the cluster, builds the operator, and checks the CRDs.
    async fn prepare(
        &self,
        webhook_port: u16,
        printer: &Printer,
    ) -> Result<(SelectedCluster, BuiltOperator)> {
        let cluster = self.cluster.connect().await?;
        show(&cluster, printer).await?;
        let built = self.operator.build(&[], printer).await?;
        let client = Client::new(cluster.client.clone());
        check_crds(&built, &client, webhook_port != 0).await?;
        Ok((cluster, built))
    }
}

/// Returns the flags with the namespace of the Lease: that of the context, because the operator
/// does not run in a pod. A flag of the user replaces it.
fn lease_namespace(cluster: &SelectedCluster, arguments: &[OsString]) -> Vec<String> {
    const FLAG: &str = "--leader-election-namespace";
    let is_given = arguments
        .iter()
        .any(|argument| argument.to_string_lossy().starts_with(FLAG));
    match is_given {
        true => Vec::new(),
        false => vec![FLAG.to_owned(), cluster.namespace.clone()],
    }
}

/// Checks that the CRDs are installed and, unless the webhook of the conversion can be reached,
/// that no object must be converted.
async fn check_crds(built: &BuiltOperator, client: &Client, is_reachable: bool) -> Result<()> {
    for crd in built.model.crds() {
        let text = |pointer| crd.pointer(pointer).and_then(|it| it.as_str());
        let name = text("/metadata/name").unwrap_or_default();
        let installed = match client.get::<CustomResourceDefinition>(name).await {
            Err(error) if error.is_not_found() => {
                bail!("the CRD {name} is not installed in this cluster: run `opkit install` first")
            }
            installed => installed?,
        };
        if !is_reachable {
            let hub = text("/spec/versions/0/name").unwrap_or_default();
            refuse_conversion(hub, &installed)?;
        }
    }
    Ok(())
}
