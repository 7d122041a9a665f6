//! The reports of the replicas: which certificate each of them serves.

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::periods::{Periods, seconds};
use crate::server_time::TOLERANCE;

#[cfg(test)]
mod tests;

/// Report of a replica. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replica {
    /// Fingerprint of the certificate that the replica serves; empty if it serves none yet.
    pub(crate) serving: String,
    /// Time since which the replica serves it.
    pub(crate) since: i64,
    /// Time of the last report.
    pub(crate) seen: i64,
}

/// Adds the report of `replica` to `content` if it is new, different, or due again. Returns whether
/// `content` was changed.
pub(crate) fn report(
    content: &mut Content,
    replica: &str,
    serving: &str,
    periods: &Periods,
    now: i64,
) -> bool {
    let known = content.replicas.get(replica);
    let same = known.filter(|report| report.serving == serving);
    if same.is_some_and(|report| now - report.seen < seconds(periods.heartbeat)) {
        return false;
    }
    let report = Replica {
        serving: serving.to_owned(),
        since: same.map_or(now, |report| report.since),
        seen: now,
    };
    content.replicas.insert(replica.to_owned(), report);
    true
}

/// Removes the reports of replicas that have not reported for the timeout. Returns whether there
/// were any.
pub(crate) fn remove_dead(content: &mut Content, periods: &Periods, now: i64) -> bool {
    let timeout = seconds(periods.replica_timeout);
    let before = content.replicas.len();
    content
        .replicas
        .retain(|_, report| now - report.seen < timeout);
    content.replicas.len() < before
}

/// Corrects reports with a time in the future, which a replica wrote before the clock of the API
/// server was set back: otherwise a rotation would wait until that time. Returns whether there were
/// any.
pub(crate) fn correct_clock(content: &mut Content, now: i64) -> bool {
    let mut is_corrected = false;
    for report in content.replicas.values_mut() {
        if report.seen > now + TOLERANCE {
            report.seen = now;
            report.since = report.since.min(now);
            is_corrected = true;
        }
    }
    is_corrected
}

/// Returns the time since which all replicas serve the certificate with this fingerprint, or `None`
/// if one of them does not.
pub(crate) fn all_serve_since(content: &Content, fingerprint: &str) -> Option<i64> {
    let mut since = i64::MIN;
    for report in content.replicas.values() {
        if report.serving != fingerprint {
            return None;
        }
        since = since.max(report.since);
    }
    Some(since)
}
