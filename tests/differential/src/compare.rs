//! Comparison of two responses.

use std::fmt;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::{RecordedResponse, Script};

/// Place in a response where the embedded server differs from the real one.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Difference {
    /// Name of the script.
    pub script: String,
    /// Name of the step.
    pub step: String,
    /// JSON pointer into the response.
    pub pointer: String,
    /// Value of the real server as JSON; `None` if it has none there.
    pub real: Option<String>,
    /// Value of the embedded server as JSON; `None` if it has none there.
    pub embedded: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        writeln!(f, "{} / {} / {}", self.script, self.step, self.pointer)?;
        writeln!(f, "    real: {}", side(&self.real))?;
        write!(f, "    embedded: {}", side(&self.embedded))
    }
}

/// Returns all differences between the responses to `script`. Responses with different statuses are
/// one difference, because their bodies have nothing in common.
///
/// # Errors
/// If the responses do not match the steps, because the recording is older than the script.
pub fn compare(
    script: &Script,
    real: &[RecordedResponse],
    embedded: &[RecordedResponse],
) -> Result<Vec<Difference>> {
    let steps: Vec<&str> = script.steps.iter().map(|step| step.name.as_str()).collect();
    let recorded: Vec<&str> = real.iter().map(|response| response.step.as_str()).collect();
    ensure!(
        steps == recorded,
        "the recording of {} has other steps: run `cargo xtask diff --record`",
        script.name
    );
    let mut differences = Vec::new();
    for (step, (real, embedded)) in script.steps.iter().zip(real.iter().zip(embedded)) {
        if real.status != embedded.status {
            differences.push(Difference {
                script: script.name.clone(),
                step: step.name.clone(),
                pointer: "/status".to_owned(),
                real: Some(outcome(real)),
                embedded: Some(outcome(embedded)),
            });
            continue;
        }
        let (real, embedded) = (serde_json::to_value(real)?, serde_json::to_value(embedded)?);
        let mut report = |pointer: &str, real: Option<&Value>, embedded: Option<&Value>| {
            differences.push(Difference {
                script: script.name.clone(),
                step: step.name.clone(),
                pointer: pointer.to_owned(),
                real: real.map(Value::to_string),
                embedded: embedded.map(Value::to_string),
            });
        };
        walk("", &real, &embedded, &mut report);
    }
    Ok(differences)
}

/// Returns the status and message of a response in one line.
fn outcome(response: &RecordedResponse) -> String {
    let text = |field: &str| response.body.get(field).and_then(Value::as_str);
    let said = text("message").or_else(|| text("kind"));
    format!("{} {}", response.status, said.unwrap_or_default())
}

/// Callback for one difference: pointer, real value, embedded value.
type Report<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

fn walk(at: &str, real: &Value, embedded: &Value, report: &mut Report<'_>) {
    match (real, embedded) {
        (Value::Object(real), Value::Object(embedded)) => {
            let more = embedded.keys().filter(|key| !real.contains_key(*key));
            for key in real.keys().chain(more) {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (real.get(key), embedded.get(key)) {
                    (Some(real), Some(embedded)) => walk(&at, real, embedded, report),
                    (real, embedded) => report(&at, real, embedded),
                }
            }
        }
        (Value::Array(real), Value::Array(embedded)) if real.len() == embedded.len() => {
            for (index, (real, embedded)) in real.iter().zip(embedded).enumerate() {
                walk(&format!("{at}/{index}"), real, embedded, report);
            }
        }
        (real, embedded) if real == embedded => {}
        (real, embedded) => report(at, Some(real), Some(embedded)),
    }
}
