//! Checks of a suite that is not a Go test: each has a name and passes or fails.

use std::time::SystemTime;

use anyhow::Result;

use super::report::Outcome;

/// Checks of one step, which count as the tests of one package.
#[derive(Debug)]
pub(super) struct Checks {
    outcome: Outcome,
    started: SystemTime,
}

impl Checks {
    pub(super) fn start() -> Self {
        Self {
            outcome: Outcome::default(),
            started: SystemTime::now(),
        }
    }

    /// Counts the result of a check. The name is a statement that is true if the check passes.
    pub(super) fn check(&mut self, name: &str, result: Result<()>) {
        match result {
            Ok(()) => {
                self.outcome.passed += 1;
                self.outcome.checked.push(name.to_owned());
            }
            Err(error) => self.outcome.failed.push(format!("{name}: {error:#}")),
        }
    }

    pub(super) fn finish(self) -> Outcome {
        Outcome {
            time: self.started.elapsed().unwrap_or_default(),
            ..self.outcome
        }
    }
}
