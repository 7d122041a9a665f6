//! Answers, as they are kept and compared.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything a server answered to one script.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Of which server, as in `v1.36.3`.
    pub server: String,
    /// One for each step.
    pub answers: Vec<Answer>,
}

/// One normalised answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The name of the step.
    pub step: String,
    /// Method and path as the script has them, for the reader.
    pub request: String,
    /// The HTTP status.
    pub status: u16,
    /// The header of this name.
    #[serde(rename = "content-type")]
    pub content_type: String,
    /// The `Warning` headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// JSON, the frames of a watch as a list, or a text.
    pub body: Value,
}
