//! A problem that a check has found.

use opkit_deploy::ObjectReference;
use serde::Serialize;
use serde_json::Value;

/// Weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Something does not work.
    Fail,
    /// Something works, and needs attention.
    Warning,
}

/// A problem of an operator in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// Weight.
    pub severity: Severity,
    /// Name of the check, such as `webhook`.
    pub check: &'static str,
    /// Object with the problem; `None` if the problem is not about one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,
    /// The problem in one sentence, which names the object.
    pub message: String,
    /// Command that solves the problem, or that shows its cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Finding {
    pub(crate) fn fail(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Fail,
            check,
            object: None,
            message: message.into(),
            command: None,
        }
    }

    pub(crate) fn warning(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::fail(check, message)
        }
    }

    /// Sets the weight.
    pub(crate) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Sets the object with the problem.
    pub(crate) fn about(mut self, object: &Value) -> Self {
        self.object = Some(ObjectReference::of(object));
        self
    }

    /// Sets the command.
    pub(crate) fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}
