//! The second round of mutating webhooks and policies.

use std::collections::BTreeSet;

use serde_json::Value;

/// The webhooks, or the policies, that are invoked a second time because the object was changed
/// after their first invocation.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    is_second_round: bool,
    is_changed: bool,
    /// Those that have been invoked, and that want to see later changes.
    invoked: BTreeSet<String>,
    /// Those to invoke in the second round.
    due: BTreeSet<String>,
    /// The object after the last invocation.
    last: Value,
}

impl Reinvocation {
    /// Starts the second round.
    pub(crate) fn start_second_round(&mut self) {
        self.is_second_round = true;
    }

    /// Returns the number of the round, which is 0 or 1.
    pub(crate) fn round(&self) -> u8 {
        u8::from(self.is_second_round)
    }

    /// Starts the invocations of a round. If others have changed the object since the last
    /// invocation, all that want it are invoked again.
    pub(crate) fn begin(&mut self, object: &Value) {
        if self.is_second_round && self.last != *object {
            self.due.append(&mut self.invoked);
        }
    }

    /// Ends the invocations of a round.
    pub(crate) fn end(&mut self, object: &Value) {
        self.last.clone_from(object);
    }

    /// Reports whether a webhook or policy is invoked in this round.
    pub(crate) fn is_due(&self, key: &str) -> bool {
        !self.is_second_round || self.due.contains(key)
    }

    /// Records that an invocation has changed the object.
    pub(crate) fn changed(&mut self) {
        self.is_changed = true;
        self.due.append(&mut self.invoked);
    }

    /// Records the invocation of a webhook or policy that wants to see later changes.
    pub(crate) fn invoked(&mut self, key: impl Into<String>) {
        self.invoked.insert(key.into());
    }

    /// Reports whether an invocation has changed the object.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }
}
