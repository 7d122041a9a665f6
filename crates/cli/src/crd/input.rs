//! CRDs that a command reads.

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::Value;

use super::source;
use crate::deploy::{OperatorArgs, Printer};

/// CRDs of files, or of an operator.
#[derive(Debug, clap::Args)]
pub(crate) struct CrdArgs {
    /// Files or directories with CRDs [default: the CRDs of the operator, which is built]
    #[arg(value_name = "PATH", conflicts_with_all = ["package", "binary"])]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    operator: OperatorArgs,
}

impl CrdArgs {
    /// Returns the CRDs, which an API server accepts.
    pub(crate) async fn crds(&self) -> Result<Vec<Value>> {
        let mut crds = Vec::new();
        for path in &self.paths {
            crds.extend(source::read(path)?);
        }
        if self.paths.is_empty() {
            let built = self.operator.build(&[], &Printer::new(true)).await?;
            crds.extend(built.model.crds().into_iter().cloned());
            if crds.is_empty() {
                bail!("{} defines no kinds", built.model.operator);
            }
        }
        let problems = opkit_apiserver::crd_problems(&crds);
        match problems.as_slice() {
            [] => Ok(crds),
            problems => bail!("an API server refuses these CRDs: {}", problems.join("; ")),
        }
    }
}
