//! What is queued with an object: why, and the spans of the events that say so.

use opkit_workqueue::{Merge, Reasons};
use tracing::Span;

use crate::record::Cause;

/// How many spans a reconcile is linked to.
const LINKS: usize = 16;

/// The causes of a reconcile, and the spans of their events where somebody traces them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Why {
    pub(crate) causes: Reasons<Cause>,
    links: Vec<Span>,
}

impl Why {
    /// Says that the event of `span` is among the causes.
    pub(crate) fn linked(mut self, span: Span) -> Self {
        if !span.is_disabled() {
            self.links.push(span);
        }
        self
    }

    /// Links the span of the reconcile to its events.
    pub(crate) fn link(&self, reconcile: &Span) {
        for link in &self.links {
            reconcile.follows_from(link);
        }
    }
}

impl From<Cause> for Why {
    fn from(cause: Cause) -> Self {
        Self {
            causes: Reasons::from(cause),
            links: Vec::new(),
        }
    }
}

impl Merge for Why {
    fn merge(&mut self, later: Self) {
        self.causes.merge(later.causes);
        let room = LINKS.saturating_sub(self.links.len());
        self.links.extend(later.links.into_iter().take(room));
    }

    /// A look that was asked for, at a later time, is not why there is one now.
    fn is_delivered_early(&self) -> bool {
        let is_asked = |cause: &Cause| matches!(cause, Cause::Requeued | Cause::Retry(_));
        !self.causes.iter().all(is_asked)
    }
}
