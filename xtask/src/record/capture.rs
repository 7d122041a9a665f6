//! What a client learns from answers and sends again: versions and uids, which are others in each
//! run.

use serde_json::Value;

/// The values seen so far.
#[derive(Debug, Default)]
pub(super) struct Captures(Vec<Capture>);

/// A value of an answer.
#[derive(Debug)]
pub(super) struct Capture {
    step: usize,
    pub(super) name: String,
    pub(super) pointer: &'static str,
    value: String,
    is_used: bool,
}

const UID: &str = "/metadata/uid";
const VERSION: &str = "/metadata/resourceVersion";

impl Captures {
    /// Remembers what the answer to a step holds. Steps count from 0, their names from 1.
    pub(super) fn learn(&mut self, step: usize, answer: &Value) {
        for (pointer, what) in [(UID, "uid"), (VERSION, "version")] {
            match answer.pointer(pointer).and_then(Value::as_str) {
                None | Some("" | "0") => {}
                Some(value) => self.0.push(Capture {
                    step,
                    name: format!("{what}{}", step + 1),
                    pointer,
                    value: value.to_owned(),
                    is_used: false,
                }),
            }
        }
    }

    /// The name in place of a version, if an answer held it.
    pub(super) fn version(&mut self, version: &str) -> Option<String> {
        let mut found = self.0.iter_mut().rev();
        let found = found.find(|known| known.pointer == VERSION && known.value == version)?;
        found.is_used = true;
        Some(format!("${{{}}}", found.name))
    }

    /// `text` with names in place of the uids in it. A uid is like nothing else, so it may be
    /// anywhere.
    pub(super) fn uids(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for known in self.0.iter_mut().filter(|known| known.pointer == UID) {
            if text.contains(&known.value) {
                known.is_used = true;
                text = text.replace(&known.value, &format!("${{{}}}", known.name));
            }
        }
        text
    }

    /// What later steps use of a step's answer.
    pub(super) fn of(&self, step: usize) -> impl Iterator<Item = &Capture> {
        self.0
            .iter()
            .filter(move |known| known.step == step && known.is_used)
    }
}
