//! `opkit lint`: checks CRDs by the conventions of Kubernetes' API.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use opkit_crds::{RULES, Severity, lint, render_findings};
use serde_json::json;

use crate::crd::CrdArgs;
use crate::deploy::{OutputFormat, print};
use crate::exit::Unsuccessful;
use crate::output;

/// CRDs to check, and rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit lint                                  # the CRDs of the operator
  opkit lint config/crd --disable no-maps,printer-columns
  opkit lint robots.yaml --output json
Exits with 1 if there is a finding of severity error.")]
pub(crate) struct LintArgs {
    #[command(flatten)]
    crds: CrdArgs,
    /// Rules that are not checked, separated by commas
    #[arg(
        long,
        value_name = "RULES",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(RULES.iter().map(|rule| rule.name)),
        hide_possible_values = true
    )]
    disable: Vec<String>,
    /// Exit with 1 for warnings, too
    #[arg(long)]
    strict: bool,
    /// Print the findings as one document [default: lines]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
    /// Print the rules, and check nothing
    #[arg(long, conflicts_with_all = ["paths", "package", "binary", "disable", "strict"])]
    rules: bool,
}

impl LintArgs {
    pub(crate) async fn run(&self) -> Result<()> {
        if self.rules {
            return self.print_rules();
        }
        let disabled: Vec<_> = self.disable.iter().map(String::as_str).collect();
        let findings = lint(&self.crds.crds().await?, &disabled)?;
        match self.output {
            Some(format) => print(format, &json!({ "findings": findings }))?,
            None => {
                let text = render_findings(&findings);
                let lines = text.lines().map(|line| output::plain(line) + "\n");
                output::write(&lines.collect::<String>());
            }
        }
        let is_failure = |severity| severity == Severity::Error || self.strict;
        match findings.iter().any(|it| is_failure(it.severity)) {
            true => Err(Unsuccessful.into()),
            false => Ok(()),
        }
    }

    fn print_rules(&self) -> Result<()> {
        if let Some(format) = self.output {
            let rules: Vec<_> = RULES
                .iter()
                .map(|it| json!({"name": it.name, "severity": it.severity, "why": it.why}))
                .collect();
            return print(format, &json!({ "rules": rules }));
        }
        for rule in RULES {
            let severity = match rule.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            output::write(&format!("{severity:<8} {:<24} {}\n", rule.name, rule.why));
        }
        Ok(())
    }
}
