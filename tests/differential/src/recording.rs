//! Responses in the form in which they are stored and compared.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All responses of a server to one script.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Version of the server, such as `v1.36.3`.
    pub server: String,
    /// Responses, one for each step.
    #[serde(rename = "answers")]
    pub responses: Vec<RecordedResponse>,
}

/// Normalized response.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedResponse {
    /// Name of the step.
    pub step: String,
    /// Method and path as in the script, for the reader.
    pub request: String,
    /// HTTP status.
    pub status: u16,
    /// Header `Content-Type`.
    #[serde(rename = "content-type")]
    pub content_type: String,
    /// `Warning` headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Body: JSON, the frames of a watch as a list, or text.
    pub body: Value,
}
