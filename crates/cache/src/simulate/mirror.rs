//! Listener that builds a copy of the objects from the deltas that it receives, and detects
//! inconsistent deltas.

use std::collections::BTreeMap;

use futures::FutureExt;

use super::server::{Key, Object};
use super::subject::{Subject, key, read};
use crate::{Delta, Event, Listener};

pub(super) struct Mirror {
    listener: Listener,
    objects: BTreeMap<Key, Object>,
    synced: bool,
}

impl Mirror {
    pub(super) fn new(subject: &Subject) -> Self {
        Self {
            listener: subject.listen(),
            objects: BTreeMap::new(),
            synced: false,
        }
    }

    /// Receives at most `at_most` events. Versions of an object may decrease only if `may_go_back`
    /// is set.
    pub(super) fn receive(&mut self, at_most: u64, may_go_back: bool) -> Result<(), String> {
        for _ in 0..at_most {
            let Some(event) = self.listener.recv().now_or_never() else {
                break;
            };
            match event {
                Event::Delta(delta) => self.take(&delta, may_go_back)?,
                Event::Synced if self.synced => return Err("synced twice".to_owned()),
                Event::Synced => self.synced = true,
            }
        }
        Ok(())
    }

    fn take(&mut self, delta: &Delta, may_go_back: bool) -> Result<(), String> {
        let key = key(&delta.key);
        let known = self.objects.get(&key);
        let wrong = |what: &str| Err(format!("{what}: known {known:?}, received {delta:?}"));
        let old = delta.old.as_ref().map(read);
        let new = delta.new.as_ref().map(read);
        match (known, &old) {
            (Some(known), Some(old)) if known == old => {}
            (None, None) => {}
            // Created and deleted unseen: only the deletion is delivered.
            (None, Some(_)) if new.is_none() && delta.coalesced => {}
            _ => return wrong("the old state is not the last one"),
        }
        // The events of two watches have no common order: an object of the same name may have been
        // created and deleted in between.
        let last = delta.last.iter().map(|last| &last.object);
        let mut others = delta.between.iter().chain(last).map(read);
        if let (Some(known), Some(new)) = (known, &new)
            && known.uid == new.uid
            && others.all(|other| other.uid == new.uid)
            // The object may have left the informer's selection and come back.
            && (new.version < known.version || new.version == known.version && !delta.coalesced)
            && !may_go_back
        {
            return wrong("a version decreased");
        }
        match new {
            Some(new) => drop(self.objects.insert(key, new)),
            None => drop(self.objects.remove(&key)),
        }
        Ok(())
    }

    /// Checks that the deltas received so far lead to the expected objects.
    pub(super) fn check(&self, expected: &[&Object]) -> Result<(), String> {
        if !self.synced {
            return Err("a listener did not receive the synced event".to_owned());
        }
        let found: Vec<_> = self.objects.values().collect();
        if found != expected {
            return Err(format!(
                "a listener received a different history\n server   {expected:?}\n listener {found:?}"
            ));
        }
        Ok(())
    }
}
