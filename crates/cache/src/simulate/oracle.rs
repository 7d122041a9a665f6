//! What reads may show at any moment, given what we did ourselves.

use std::collections::{BTreeMap, BTreeSet};

use super::link::Link;
use super::server::{Key, Object, Response, Server};
use super::subject::Subject;

/// What reads have seen of our own writes and deletions: they never go back behind it.
#[derive(Default)]
pub(super) struct Oracle {
    /// UIDs of objects that we deleted.
    ended: BTreeSet<String>,
    /// The version of our last write.
    written: BTreeMap<Key, u64>,
}

impl Oracle {
    /// A response was taken in. `is_listed` is whether every reflector has completed a list: before,
    /// writes are not shown.
    pub(super) fn observed(&mut self, response: &Response, subject: &Subject, is_listed: bool) {
        match response {
            Response::Object(object) if object.is_deleting && object.finalizers == 0 => {
                self.ended.insert(object.uid.clone());
            }
            Response::Object(object) if is_listed => {
                let version = self.written.entry(object.key.clone()).or_default();
                *version = object.version.max(*version);
            }
            // Somebody who never read the object knows no version of it, and the cache may not either.
            Response::Gone { uid, known, .. } if known.is_some() || self.was_read(uid, subject) => {
                self.ended.insert(uid.clone());
            }
            Response::Object(_) | Response::Gone { .. } => {}
        }
    }

    fn was_read(&self, uid: &str, subject: &Subject) -> bool {
        subject.contents().iter().any(|object| object.uid == uid)
    }

    /// Other watches read the objects: what they do not cover may be missed.
    pub(super) fn resplit(&mut self) {
        self.written.clear();
    }

    /// The server has forgotten what we did, and nothing is known.
    pub(super) fn restored(&mut self) {
        *self = Oracle::default();
    }

    /// Whether reads show what they have to.
    pub(super) fn check(
        &self,
        subject: &Subject,
        server: &Server,
        links: &[Link],
        selects: bool,
    ) -> Result<(), String> {
        for read in subject.contents() {
            if self.ended.contains(&read.uid) {
                return Err(format!("a ghost: we deleted {read:?}"));
            }
        }
        // Two watches of one namespace have no order.
        if links.iter().any(Link::is_sharded) {
            return Ok(());
        }
        for (key, version) in &self.written {
            match subject.get(key) {
                Some(read) if read.version >= *version => {}
                None if server.was_absent(key, *version, selects) => {}
                read => return Err(format!("wrote {key:?} at {version}, then read {read:?}")),
            }
        }
        Ok(())
    }

    /// Whether reads show what a list has, which `link` has just completed.
    pub(super) fn check_list(
        &self,
        subject: &Subject,
        server: &Server,
        link: &Link,
        selects: bool,
    ) -> Result<(), String> {
        let version = link.version();
        let is_listed = |object: &Object| link.reads(object) && (!selects || object.is_selected);
        let listed = server.at(version);
        let is_ours = |key: &Key| self.written.get(key).is_some_and(|own| *own > version);
        for object in listed.values().filter(|object| is_listed(object)) {
            match subject.get(&object.key) {
                Some(read) if read.version >= object.version => {}
                None if self.ended.contains(&object.uid) || is_ours(&object.key) => {}
                _ if link.is_sharded() => {}
                read => return Err(format!("listed {object:?}, but read {read:?}")),
            }
        }
        for read in subject.contents().iter().filter(|read| link.reads(read)) {
            let is_there = listed.get(&read.key).is_some_and(|it| it.uid == read.uid);
            if !is_there && read.version <= version {
                return Err(format!("the list of {version} has not {read:?}"));
            }
        }
        Ok(())
    }
}
