//! The causes that are queued with an object, and the spans of their events.

use opkit_workqueue::{Merge, Reasons};
use tracing::Span;

use crate::record::Cause;

/// Largest number of spans that a reconcile is linked to. Bounds the memory of a queued object.
const MAX_LINKS: usize = 16;

/// The causes of a reconcile, and the spans of their events if tracing is enabled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Causes {
    pub(crate) reasons: Reasons<Cause>,
    links: Vec<Span>,
}

impl Causes {
    /// Adds the span of the event that caused the reconcile.
    pub(crate) fn linked(mut self, span: Span) -> Self {
        if !span.is_disabled() {
            self.links.push(span);
        }
        self
    }

    /// Links the span of the reconcile to the spans of its events.
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

    /// Returns `false` for a requeue or retry that was due later: it is not a cause of an earlier
    /// reconcile.
    fn is_delivered_early(&self) -> bool {
        let is_asked = |cause: &Cause| matches!(cause, Cause::Requeued | Cause::Retry(_));
        !self.reasons.iter().all(is_asked)
    }
}
