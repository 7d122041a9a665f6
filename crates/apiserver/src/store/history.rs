//! Past events. A watch or controller reads the events after the last revision that it has read.

use super::{Change, Event, Store, Table, TooOld};
use crate::object;

impl Store {
    /// Returns the events of a resource after `revision`, oldest first. Also returns the current
    /// revision, from which the next read continues.
    pub(crate) fn events_after(
        &self,
        resource: &str,
        revision: u64,
    ) -> Result<(Vec<Event>, u64), TooOld> {
        let state = self.state.lock();
        let events = match state.tables.get(resource) {
            Some(table) => table.after(revision)?.cloned().collect(),
            None => Vec::new(),
        };
        Ok((events, state.revision.max(revision)))
    }

    /// Returns the events of all resources after `revision`, oldest first, each with the name of
    /// its resource. Also returns the current revision, from which the next read continues.
    pub(crate) fn all_events_after(
        &self,
        revision: u64,
    ) -> Result<(Vec<(String, Event)>, u64), TooOld> {
        let state = self.state.lock();
        let mut events = Vec::new();
        for (resource, table) in &state.tables {
            let after = table.after(revision)?;
            events.extend(after.map(|event| (resource.clone(), event.clone())));
        }
        events.sort_by_key(|(_, event)| event.revision);
        Ok((events, state.revision))
    }

    /// Returns an event `Added` for every stored object, for a reader that has missed dropped
    /// events. Also returns the current revision.
    pub(crate) fn everything(&self) -> (Vec<(String, Event)>, u64) {
        let state = self.state.lock();
        let mut events = Vec::new();
        for (resource, table) in &state.tables {
            events.extend(table.objects.values().map(|object| {
                let event = Event {
                    revision: object::revision(object),
                    change: Change::Added,
                    object: object.clone(),
                    previous: None,
                };
                (resource.clone(), event)
            }));
        }
        events.sort_by_key(|(_, event)| event.revision);
        (events, state.revision)
    }
}

impl Table {
    /// Returns the events after `revision`.
    ///
    /// # Errors
    /// [`TooOld`] if an event after `revision` has been dropped.
    pub(super) fn after(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Event>, TooOld> {
        if revision < self.forgotten {
            return Err(TooOld {
                oldest: self.forgotten,
            });
        }
        let start = self
            .events
            .partition_point(|event| event.revision <= revision);
        Ok(self.events.range(start..))
    }
}
