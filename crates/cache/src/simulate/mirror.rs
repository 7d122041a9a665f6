//! A listener that keeps its own copy from what it is told, and notices what does not fit.

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

    /// Receives at most so many events.
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
        let wrong = |what: &str| Err(format!("{what}: knew {known:?}, was told {delta:?}"));
        let old = delta.old.as_ref().map(read);
        let new = delta.new.as_ref().map(read);
        match (known, &old) {
            (Some(known), Some(old)) if known == old => {}
            (None, None) => {}
            // Made and gone unseen: only that it was there is told.
            (None, Some(_)) if new.is_none() && delta.coalesced => {}
            _ => return wrong("the old state is not the last one"),
        }
        if let (Some(known), Some(new)) = (known, &new)
            && known.uid == new.uid
            // It may have been gone for the informer, and have come back.
            && (new.version < known.version || new.version == known.version && !delta.coalesced)
            && !may_go_back
        {
            return wrong("a version went back");
        }
        match new {
            Some(new) => drop(self.objects.insert(key, new)),
            None => drop(self.objects.remove(&key)),
        }
        Ok(())
    }

    /// Whether all that was told leads to what there is.
    pub(super) fn check(&self, expected: &[&Object]) -> Result<(), String> {
        if !self.synced {
            return Err("a listener was not told that all is listed".to_owned());
        }
        let found: Vec<_> = self.objects.values().collect();
        if found != expected {
            return Err(format!(
                "a listener saw another history\n server   {expected:?}\n listener {found:?}"
            ));
        }
        Ok(())
    }
}
