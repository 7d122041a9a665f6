//! Detects children that are created and pruned alternately. This happens if a reconcile applies a
//! child only when the child does not exist: the next reconcile finds the child, does not apply it,
//! and so prunes it.

use std::time::Duration;

use super::{HotLoop, MAX_TRACKED, WINDOW};
use crate::record::ReconcileRecord;

/// Number of times that a child must be created and then pruned to count as a loop.
const TURNS: u32 = 3;

/// The children that were created or pruned recently.
#[derive(Debug, Default)]
pub(super) struct Turns {
    children: Vec<Child>,
}

#[derive(Debug)]
struct Child {
    /// Kind and name of the child.
    object: String,
    namespace: Option<String>,
    verb: &'static str,
    /// Time of the last creation or pruning.
    at: Duration,
    /// Number of times in a row that a creation followed a pruning or a pruning followed a
    /// creation.
    count: u32,
}

impl Turns {
    /// Records a finished reconcile. Returns the loop that the reconcile is part of, if any.
    pub(super) fn observe(&mut self, now: Duration, record: &ReconcileRecord) -> Option<HotLoop> {
        let is_recent = |child: &Child| now.saturating_sub(child.at) <= WINDOW;
        self.children.retain(is_recent);
        let mut found = None;
        let writes = record.writes.iter();
        for write in writes.filter(|write| ["create", "prune"].contains(&write.verb)) {
            let object = format!("{} {}", write.kind, write.key.name);
            let namespace = &write.key.namespace;
            let mut children = self.children.iter_mut();
            let known = children.find(|it| it.object == object && it.namespace == *namespace);
            let Some(child) = known else {
                if self.children.len() < MAX_TRACKED {
                    self.children.push(Child {
                        object,
                        namespace: namespace.clone(),
                        verb: write.verb,
                        at: now,
                        count: 0,
                    });
                }
                continue;
            };
            child.at = now;
            child.count = match child.verb == write.verb {
                true => 0,
                false => child.count.saturating_add(1),
            };
            child.verb = write.verb;
            if child.count >= 2 * TURNS - 1 {
                found = Some(HotLoop {
                    object,
                    field: String::new(),
                    manager: None,
                    because: None,
                    is_created_and_pruned: true,
                    count: child.count.saturating_add(1),
                });
            }
        }
        found
    }
}
