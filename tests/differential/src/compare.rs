//! Where two answers differ.

use std::fmt;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::{Answer, Script};

/// One place where the embedded server does not answer as the real one.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Difference {
    /// The name of the script.
    pub script: String,
    /// The name of the step.
    pub step: String,
    /// Where in the answer.
    pub pointer: String,
    /// What the real server says, as JSON; nothing if it says nothing there.
    pub real: Option<String>,
    /// What the embedded server says.
    pub ours: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        writeln!(f, "{} / {} / {}", self.script, self.step, self.pointer)?;
        writeln!(f, "    real: {}", side(&self.real))?;
        write!(f, "    ours: {}", side(&self.ours))
    }
}

/// Every difference between the answers to `script`. Answers of different status are one
/// difference: their bodies have nothing in common.
///
/// # Errors
/// If the answers are not those to the steps: the recording is older than the script.
pub fn compare(script: &Script, real: &[Answer], ours: &[Answer]) -> Result<Vec<Difference>> {
    let steps: Vec<&str> = script.steps.iter().map(|step| step.name.as_str()).collect();
    let recorded: Vec<&str> = real.iter().map(|answer| answer.step.as_str()).collect();
    ensure!(
        steps == recorded,
        "the recording of {} is of other steps: run `cargo xtask diff --record`",
        script.name
    );
    let mut differences = Vec::new();
    for (step, (real, ours)) in script.steps.iter().zip(real.iter().zip(ours)) {
        if real.status != ours.status {
            differences.push(Difference {
                script: script.name.clone(),
                step: step.name.clone(),
                pointer: "/status".to_owned(),
                real: Some(outcome(real)),
                ours: Some(outcome(ours)),
            });
            continue;
        }
        let (real, ours) = (serde_json::to_value(real)?, serde_json::to_value(ours)?);
        let mut report = |pointer: &str, real: Option<&Value>, ours: Option<&Value>| {
            differences.push(Difference {
                script: script.name.clone(),
                step: step.name.clone(),
                pointer: pointer.to_owned(),
                real: real.map(Value::to_string),
                ours: ours.map(Value::to_string),
            });
        };
        walk("", &real, &ours, &mut report);
    }
    Ok(differences)
}

/// What came of a request, in a line.
fn outcome(answer: &Answer) -> String {
    let text = |field: &str| answer.body.get(field).and_then(Value::as_str);
    let said = text("message").or_else(|| text("kind"));
    format!("{} {}", answer.status, said.unwrap_or_default())
}

/// Takes one difference: where, what the real server says, what ours says.
type Report<'a> = dyn FnMut(&str, Option<&Value>, Option<&Value>) + 'a;

fn walk(at: &str, real: &Value, ours: &Value, report: &mut Report<'_>) {
    match (real, ours) {
        (Value::Object(real), Value::Object(ours)) => {
            let more = ours.keys().filter(|key| !real.contains_key(*key));
            for key in real.keys().chain(more) {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (real.get(key), ours.get(key)) {
                    (Some(real), Some(ours)) => walk(&at, real, ours, report),
                    (real, ours) => report(&at, real, ours),
                }
            }
        }
        (Value::Array(real), Value::Array(ours)) if real.len() == ours.len() => {
            for (index, (real, ours)) in real.iter().zip(ours).enumerate() {
                walk(&format!("{at}/{index}"), real, ours, report);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => report(at, Some(real), Some(ours)),
    }
}
