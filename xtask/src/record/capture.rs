//! Values that a client takes from responses and sends again: versions and uids, which differ in
//! each run.

use serde_json::Value;

/// Values seen so far.
#[derive(Debug, Default)]
pub(super) struct Captures(Vec<Capture>);

/// Value of a response.
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
    /// Remembers the versions and uids in the response to a step. Steps count from 0, their names
    /// from 1.
    pub(super) fn learn(&mut self, step: usize, response: &Value) {
        for (pointer, what) in [(UID, "uid"), (VERSION, "version")] {
            match response.pointer(pointer).and_then(Value::as_str) {
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

    /// Returns the name that replaces a version, if a response had it.
    pub(super) fn version(&mut self, version: &str) -> Option<String> {
        let mut found = self.0.iter_mut().rev();
        let found = found.find(|known| known.pointer == VERSION && known.value == version)?;
        found.is_used = true;
        Some(format!("${{{}}}", found.name))
    }

    /// Replaces the uids in `text` by names. A uid cannot be confused with other text, so it may be
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

    /// Returns the values of a step's response that later steps use.
    pub(super) fn of(&self, step: usize) -> impl Iterator<Item = &Capture> {
        self.0
            .iter()
            .filter(move |known| known.step == step && known.is_used)
    }
}
