//! The webhook that converts objects between versions, and its log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opkit_apimachinery::conversion::{self, KindVersions};
use opkit_webhook::ConversionWebhook;
use tokio::time::Instant;
use tracing::warn;

/// Least time between two log lines. An API server converts the same object for each read and for
/// each watcher, so one object that cannot be converted would fill the log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Creates the webhook that converts objects between the versions of kinds, and logs failures and
/// lost values.
pub(super) fn webhook(kinds: Vec<KindVersions>) -> ConversionWebhook {
    let log = ConversionLog::default();
    ConversionWebhook::new(move |body| {
        let review = conversion::review(&kinds, body);
        if let Some((problem, more)) = log.add(review.warnings, Instant::now()) {
            warn!(problem, more, "a conversion failed or lost values");
        }
        review.body
    })
}

/// Problems of conversions since the last log line.
#[derive(Debug, Default)]
struct ConversionLog {
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    logged: Option<Instant>,
    /// Number of problems that were not logged.
    skipped: usize,
}

impl ConversionLog {
    /// Adds the problems of a request. Returns the one to log and the number of all others since
    /// the last log line, or `None` if there is none or the last log line was a short time ago.
    fn add(&self, problems: Vec<String>, now: Instant) -> Option<(String, usize)> {
        let count = problems.len();
        let first = problems.into_iter().next()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |logged| now.saturating_duration_since(logged) < LOG_INTERVAL;
        if state.logged.is_some_and(is_recent) {
            state.skipped = state.skipped.saturating_add(count);
            return None;
        }
        state.logged = Some(now);
        let more = std::mem::take(&mut state.skipped).saturating_add(count - 1);
        Some((first, more))
    }
}

#[cfg(test)]
mod tests;
