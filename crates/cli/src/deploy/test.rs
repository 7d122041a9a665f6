//! `opkit test`: the tests of an operator, on one control plane after the other.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::process::Command;
use tokio::time::Instant;

use super::progress::Printer;
use crate::dev::package::Package;

/// Tests, and the control planes that they run on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit test                        # on the embedded control plane
  opkit test --binaries             # then on etcd and kube-apiserver (KUBEBUILDER_ASSETS)
  opkit test --cluster -- ready     # then on the current cluster, only tests with `ready` in the name")]
pub(crate) struct TestArgs {
    /// Package of the operator [default: the package of the current directory, or the only operator
    /// of the workspace]
    #[arg(long, short, value_name = "NAME")]
    package: Option<String>,
    /// Run the tests on etcd and kube-apiserver, too
    #[arg(long)]
    binaries: bool,
    /// Run the tests on the cluster of the current kubeconfig, too
    #[arg(long)]
    cluster: bool,
    /// Arguments of the tests, such as a part of their names
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl TestArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        let package = Package::find(self.package.as_deref())?;
        let printer = Printer::new(false);
        let mut planes = vec!["embedded"];
        planes.extend(self.binaries.then_some("binaries"));
        planes.extend(self.cluster.then_some("cluster"));
        let mut rows = Vec::new();
        for plane in planes {
            let start = Instant::now();
            let passed = self.run_on(&package.name, plane).await?;
            rows.push((plane, passed, start.elapsed()));
        }
        for (plane, passed, elapsed) in &rows {
            let result = if *passed { "passed" } else { "FAILED" };
            let seconds = elapsed.as_secs_f64();
            printer.line(plane, &format!("{result}   {seconds:.1} s"));
        }
        let failed = rows.iter().filter(|(_, passed, _)| !passed);
        let failed: Vec<_> = failed.map(|(plane, ..)| *plane).collect();
        match failed.as_slice() {
            [] => Ok(()),
            failed => bail!(
                "tests of {} failed on {}: see their output above",
                package.name,
                failed.join(" and ")
            ),
        }
    }

    /// Runs the tests on one control plane. Returns whether all passed.
    async fn run_on(&self, package: &str, plane: &str) -> Result<bool> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["test", "--package", package])
            .arg("--")
            .args(&self.arguments)
            .env("OPKIT_CONTROL_PLANE", plane)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .context("cannot run cargo")?;
        Ok(status.success())
    }
}
