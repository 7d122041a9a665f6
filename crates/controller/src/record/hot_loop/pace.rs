//! Finding objects that are reconciled without a pause, whatever leads to it: a result that asks
//! for the next reconcile at once, a trigger that fires in each one, writes that are not known to
//! be ours.
//!
//! It counts, per object, the reconciles of one cause in a window of time; the records of the
//! object hold all else that it needs.

use std::sync::Arc;
use std::time::Duration;

use super::HotLoop;
use crate::record::{Cause, ReconcileRecord};

/// The time in which reconciles are counted.
const WINDOW: Duration = Duration::from_secs(5);
/// In a window, so many reconciles that the controller itself asked for or caused are a loop:
/// twenty a second. A backoff of 5 ms that doubles leads to eleven.
const ASKED: u32 = 100;
/// In a window, so many that a change of one and the same object led to: a hundred a second.
const CHANGED: u32 = 500;

/// How fast one object is reconciled.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When the window began.
    since: Duration,
    in_window: u32,
    /// In this window and in those before it that were part of the loop.
    total: u32,
}

impl Pace {
    /// Takes in a reconcile that has ended, and the records of those before it, the oldest first;
    /// the loop that it is part of, if there is one. The clock is read only if it matters, which
    /// for most reconciles it does not.
    pub(crate) fn observe<'r>(
        &mut self,
        clock: impl FnOnce() -> Duration,
        record: &ReconcileRecord,
        mut before: impl DoubleEndedIterator<Item = &'r Arc<ReconcileRecord>>,
    ) -> Option<HotLoop> {
        let (last, last_but_one) = (before.next_back()?, before.next_back());
        let limit = match record.causes.iter().next() {
            Some(_) if is_own(record, [Some(last), last_but_one]) => ASKED,
            Some(_) if is_alike(record, last) => CHANGED,
            _ => {
                *self = Self::default();
                return None;
            }
        };
        let now = clock();
        if self.in_window == 0 || now.saturating_sub(self.since) > WINDOW {
            if self.in_window < limit {
                self.total = 0;
            }
            (self.since, self.in_window) = (now, 0);
        }
        self.in_window = self.in_window.saturating_add(1);
        self.total = self.total.saturating_add(1);
        (self.in_window >= limit || self.total > self.in_window).then(|| HotLoop {
            object: format!("{} {}", record.kind, record.request.name),
            field: String::new(),
            manager: None,
            because: record.causes.iter().next().map(without_fields),
            is_created_and_pruned: false,
            count: self.total,
        })
    }
}

/// Whether every cause is of the controller's own making: asked for by a result or a trigger, or a
/// change of what the last reconciles wrote. An event may come a reconcile late, hence two of them.
fn is_own(record: &ReconcileRecord, last: [Option<&Arc<ReconcileRecord>>; 2]) -> bool {
    let wrote = |kind: Option<&str>, name: &str| {
        let kind = kind.unwrap_or(&record.kind);
        let mut writes = last.iter().flatten().flat_map(|before| &before.writes);
        writes.any(|write| write.kind == kind && write.key.name == name)
    };
    record.causes.more() == 0
        && record.causes.iter().all(|cause| match cause {
            Cause::Requeued | Cause::Retry(_) | Cause::Triggered { .. } => true,
            cause => (cause.change()).is_some_and(|(kind, name, _)| wrote(kind, name)),
        })
}

/// Whether one object has changed before both reconciles.
fn is_alike(record: &ReconcileRecord, last: &ReconcileRecord) -> bool {
    let mut changed = record.causes.iter().filter_map(Cause::change);
    changed.any(|(kind, name, _)| {
        let mut before = last.causes.iter().filter_map(Cause::change);
        before.any(|other| (other.0, other.1) == (kind, name))
    })
}

/// The cause as a sentence, without the fields that changed.
fn without_fields(cause: &Cause) -> String {
    match cause {
        Cause::Changed { kind, name, .. } => Cause::Changed {
            kind: kind.clone(),
            name: name.clone(),
            fields: Vec::new(),
        }
        .to_string(),
        cause => cause.to_string(),
    }
}

#[cfg(test)]
mod tests;
