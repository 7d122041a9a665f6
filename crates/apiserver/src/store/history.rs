//! Past events, which watches and controllers read with a cursor.

use super::{Change, Event, Store, Table, TooOld};
use crate::object;

impl Store {
    /// Returns the events of a resource after `revision`, oldest first, and the revision up to
    /// which they are complete.
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

    /// Returns the events of all resources after `revision`, oldest first, each with its resource,
    /// and the revision up to which they are complete.
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

    /// Returns an event `Added` for every object, for a reader whose cursor is too old.
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
    /// [`TooOld`] if one of them has been dropped.
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
