//! The causes of a queued reconcile, and the tracing spans of the events behind them.

use opkit_workqueue::{Merge, Reasons};
use tracing::Span;

use crate::record::Cause;

/// Largest number of tracing spans that a reconcile is linked to. Bounds the memory of a queued
/// object.
const MAX_LINKS: usize = 16;

/// The causes of a reconcile, and the tracing spans of the events that caused it if tracing is
/// enabled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Causes {
    pub(crate) reasons: Reasons<Cause>,
    links: Vec<Span>,
}

impl Causes {
    /// Adds the tracing span of the event that caused the reconcile.
    pub(crate) fn linked(mut self, span: Span) -> Self {
        if !span.is_disabled() {
            self.links.push(span);
        }
        self
    }

    /// Links the tracing span of the reconcile to the spans of the events that caused it.
    pub(crate) fn link(&self, reconcile: &Span) {
        for link in &self.links {
            reconcile.follows_from(link);
        }
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        Self {
            reasons: Reasons::from(cause),
            links: Vec::new(),
        }
    }
}

impl Merge for Causes {
    fn merge(&mut self, later: Self) {
        self.reasons.merge(later.reasons);
        let room = MAX_LINKS.saturating_sub(self.links.len());
        self.links.extend(later.links.into_iter().take(room));
    }

    /// Reports whether these causes count for a reconcile that happens before their delay has
    /// passed. `false` if all causes are requeues and retries: a requeue that is due later is not a
    /// cause of an earlier reconcile.
    fn is_delivered_early(&self) -> bool {
        let is_asked = |cause: &Cause| matches!(cause, Cause::Requeued | Cause::Retry(_));
        !self.reasons.iter().all(is_asked)
    }
}
