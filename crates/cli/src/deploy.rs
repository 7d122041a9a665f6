//! Commands that bring an operator to a cluster: its manifests, its CRDs, and its deployment.

mod cluster;
mod conversion;
mod image;
mod install;
mod manifests;
mod operator;
mod progress;
mod release;
mod run;
mod test;

pub(crate) use cluster::{is_local, show};
pub(crate) use conversion::refuse_conversion;
pub(crate) use install::{InstallArgs, UninstallArgs};
pub(crate) use manifests::ManifestsArgs;
pub(crate) use operator::{BuiltOperator, OperatorArgs, RenderArgs};
pub(crate) use progress::Printer;
pub(crate) use release::{DeployArgs, UndeployArgs, release};
pub(crate) use run::RunArgs;
pub(crate) use test::TestArgs;

/// Format of a result for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// Prints a result for scripts.
pub(crate) fn print(format: OutputFormat, result: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = match format {
        OutputFormat::Json => serde_json::to_string_pretty(result)?,
        OutputFormat::Yaml => serde_saphyr::to_string(&serde_json::to_value(result)?)?,
    };
    crate::output::write(&format!("{}\n", text.trim_end()));
    Ok(())
}
