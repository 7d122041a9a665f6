//! Model of the states that reads may show at any moment, given the writes and deletions of the
//! process under test.

use std::collections::{BTreeMap, BTreeSet};

use super::link::Link;
use super::server::{Key, Object, Response, Server};
use super::subject::Subject;

/// Writes and deletions of the process under test. Reads must never show an older state.
#[derive(Default)]
pub(super) struct Oracle {
    /// UIDs of deleted objects that reads must not return, with the namespaces of these objects.
    ended: BTreeMap<String, &'static str>,
    /// UIDs of objects that the process under test has deleted. Reads may hide these objects.
    gone: BTreeSet<String>,
    /// Version of the last write of each object by the process under test. Reads must not show a
    /// lower version.
    written: BTreeMap<Key, u64>,
    /// Highest version of each object that responses to the process under test have shown. Listed
    /// objects below this version may be hidden.
    observed: BTreeMap<Key, u64>,
}

impl Oracle {
    /// Records a response that is passed to the informer. `is_listed` is whether every reflector
    /// has completed a list since the start or the last restore. Before that, reads need not show
    /// writes. After a restore, undone versions may look newer than a deletion. `is_partial` is
    /// whether an object can be missing although its watch has not reported its deletion: because
    /// it had owners in other parts, or because the watch of another shard has reported an object
    /// of the same name. An informer that does not have the object ignores the deletion then.
    pub(super) fn observed(
        &mut self,
        response: &Response,
        subject: &Subject,
        server: &Server,
        is_listed: bool,
        is_partial: bool,
    ) {
        let (namespace, uid) = response.of();
        let contents = subject.contents();
        let mut read = contents.iter();
        let read = read.find(|read| read.uid == uid && read.key.namespace == namespace);
        let is_known = (is_listed || server.restored() == 0) && (!is_partial || read.is_some());
        match response {
            Response::Object(object) => {
                self.note(&object.key, object.version);
                if object.is_deleting && object.finalizers == 0 {
                    self.gone.insert(object.uid.clone());
                    if is_known {
                        self.ended.insert(object.uid.clone(), object.key.namespace);
                    }
                } else if is_listed {
                    let version = self.written.entry(object.key.clone()).or_default();
                    *version = object.version.max(*version);
                }
            }
            Response::Gone { key, uid, known } => {
                self.gone.insert(uid.clone());
                // A caller that never read the object knows no version of it, and the cache may not
                // know one either.
                if let Some(known) = known.or(read.map(|read| read.version)) {
                    self.note(key, known);
                    if is_known {
                        self.ended.insert(uid.clone(), key.namespace);
                    }
                }
            }
        }
    }

    fn note(&mut self, key: &Key, version: u64) {
        let observed = self.observed.entry(key.clone()).or_default();
        *observed = version.max(*observed);
    }

    /// Records that the reflectors were replaced by `links`. Nothing is known any more about
    /// writes, nor about deleted objects that no new reflector reads.
    pub(super) fn resplit(&mut self, links: &[Link]) {
        self.written.clear();
        self.ended
            .retain(|uid, namespace| links.iter().any(|link| link.covers(namespace, uid)));
    }

    /// Records a restore of the server. The server has lost writes, so nothing is known about them
    /// any more.
    pub(super) fn restored(&mut self) {
        *self = Self::default();
    }

    /// Checks that reads show no object that must be hidden, and no version older than a known
    /// write.
    pub(super) fn check(
        &self,
        subject: &Subject,
        server: &Server,
        links: &[Link],
        selects: bool,
    ) -> Result<(), String> {
        for read in subject.contents() {
            if self.ended.contains_key(&read.uid) {
                return Err(format!(
                    "read an object that an own request has deleted: {read:?}"
                ));
            }
        }
        // The events of two watches of one namespace have no common order.
        if links.iter().any(Link::is_sharded) {
            return Ok(());
        }
        let is_read = |object: &Object| {
            (!selects || object.is_selected) && links.iter().any(|link| link.reads(object))
        };
        for (key, version) in &self.written {
            match subject.get(key) {
                Some(read) if read.version >= *version => {}
                None if server.was_absent(key, *version, is_read) => {}
                read => return Err(format!("wrote {key:?} at {version}, then read {read:?}")),
            }
        }
        Ok(())
    }

    /// Checks that reads show the list that `link` has just completed.
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
        let is_ours = |key: &Key| self.observed.get(key).is_some_and(|own| *own > version);
        for object in listed.values().filter(|object| is_listed(object)) {
            match subject.get(&object.key) {
                Some(read) if read.version >= object.version => {}
                None if self.gone.contains(&object.uid) || is_ours(&object.key) => {}
                _ if link.is_sharded() => {}
                read => return Err(format!("listed {object:?}, but read {read:?}")),
            }
        }
        for read in subject.contents().iter().filter(|read| link.reads(read)) {
            let listed = listed.get(&read.key).filter(|it| link.reads(it));
            let is_there = listed.is_some_and(|it| it.uid == read.uid);
            if !is_there && read.version <= version {
                return Err(format!(
                    "the list at version {version} does not contain {read:?}"
                ));
            }
        }
        Ok(())
    }
}
