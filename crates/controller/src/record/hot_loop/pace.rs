//! Detects objects that are reconciled without a pause, whatever the cause: a reconcile that
//! requests the next reconcile immediately, a trigger that fires in each reconcile, or writes that
//! are not known to be the controller's.
//!
//! [`Pace`] counts, per object, the reconciles with the same cause within a window of time.
//! Everything else that is needed is in the records of the object.

use std::sync::Arc;
use std::time::Duration;

use super::HotLoop;
use crate::record::{Cause, ReconcileRecord};

/// Window of time in which reconciles are counted.
const WINDOW: Duration = Duration::from_secs(5);
/// Number of reconciles per window that count as a loop if the controller itself requests or causes
/// them: 20 per second. A retry backoff that starts at 5 ms and doubles leads to only 11.
const OWN_LIMIT: u32 = 100;
/// Number of reconciles per window that count as a loop if changes of the same object cause them:
/// 100 per second.
const CHANGE_LIMIT: u32 = 500;

/// Counter of the reconciles of one object within a window of time.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Start of the current window.
    since: Duration,
    in_window: u32,
    /// Number of reconciles in the current window and in the earlier windows of the same loop.
    total: u32,
}

impl Pace {
    /// Records a finished reconcile. `before` contains the records of the earlier reconciles,
    /// oldest first. Returns the loop that the reconcile is part of, if any. `clock` is called only
    /// when needed, which for most reconciles is never.
    pub(crate) fn observe<'r>(
        &mut self,
        clock: impl FnOnce() -> Duration,
        record: &ReconcileRecord,
        mut before: impl DoubleEndedIterator<Item = &'r Arc<ReconcileRecord>>,
    ) -> Option<HotLoop> {
        let (last, last_but_one) = (before.next_back()?, before.next_back());
        let limit = match record.causes.iter().next() {
            Some(_) if is_own(record, [Some(last), last_but_one]) => OWN_LIMIT,
            Some(_) if is_alike(record, last) => CHANGE_LIMIT,
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

/// Reports whether the operator itself caused a reconcile: every cause is a requeue, a retry, a
/// trigger of the operator, or a change of an object that one of the last two reconciles wrote. Two
/// reconciles are tested, because the event of a write may arrive one reconcile late.
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

/// Reports whether both reconciles were caused by a change of the same object.
fn is_alike(record: &ReconcileRecord, last: &ReconcileRecord) -> bool {
    let mut changed = record.causes.iter().filter_map(Cause::change);
    changed.any(|(kind, name, _)| {
        let mut before = last.causes.iter().filter_map(Cause::change);
        before.any(|other| (other.0, other.1) == (kind, name))
    })
}

/// Returns the cause as text, without the fields that changed.
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
