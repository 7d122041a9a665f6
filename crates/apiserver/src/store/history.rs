//! Past events. A watch or controller reads the events after the last revision that it has read.

use super::entry::ByKey;
use super::{Change, Event, Store, Table, TooOld};

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

    /// Returns the events of all resources after `revision`, oldest first. Also returns the current
    /// revision, from which the next read continues.
    pub(crate) fn all_events_after(&self, revision: u64) -> Result<(Vec<Event>, u64), TooOld> {
        let state = self.state.lock();
        let mut events = Vec::new();
        for table in state.tables.values() {
            events.extend(table.after(revision)?.cloned());
        }
        events.sort_by_key(|event| event.revision);
        Ok((events, state.revision))
    }

    /// Returns an event `Added` for every stored object, for a reader that has missed dropped
    /// events. Also returns the current revision.
    pub(crate) fn everything(&self) -> (Vec<Event>, u64) {
        let state = self.state.lock();
        let objects = state.tables.values().flat_map(|table| &table.objects);
        let mut events: Vec<Event> = objects
            .map(|ByKey(object)| Event {
                revision: object.revision(),
                change: Change::Added,
                object: object.clone(),
                previous: None,
            })
            .collect();
        events.sort_by_key(|event| event.revision);
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
