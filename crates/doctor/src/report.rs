//! The problems as text and as data.

use std::fmt;

use serde::Serialize;

use crate::{Finding, Severity};

/// Result of a diagnosis. Its text has a line for each finding, the failures first, and below it
/// the command. Without findings there is one line, which starts with `ok`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// Name and version of the cluster.
    pub cluster: String,
    /// Name of the operator.
    pub operator: String,
    /// Whether the user has the permissions of a deployment.
    pub may_deploy: bool,
    /// The problems.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Reports whether something does not work.
    pub fn is_failure(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.severity == Severity::Fail)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cluster = vec![self.cluster.as_str()];
        if self.may_deploy {
            cluster.push("you may do all that deploy does");
        }
        let nothing = format!("{} has no problems", self.operator);
        if self.findings.is_empty() {
            cluster.push(&nothing);
        }
        writeln!(f, "{:<5} {:<13} {}", "ok", "cluster", cluster.join("; "))?;
        for finding in &self.findings {
            let severity = match finding.severity {
                Severity::Fail => "FAIL",
                Severity::Warning => "warn",
            };
            writeln!(f, "{severity:<5} {:<13} {}", finding.check, finding.message)?;
            if let Some(command) = &finding.command {
                writeln!(f, "{:<19} {command}", "")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
