//! Conversion of informer events to the watcher events of kube-runtime.
//!
//! kube's helpers for streams (`WatchStreamExt`: predicates, `applied_objects`, `reflect`) take
//! streams of [`watcher::Event`]. [`watcher_events`] creates such a stream from a listener of an
//! informer, so that the helpers work with informers: all listeners share one watch, and changes
//! and deletions during an interruption of the watch are not lost. This code is a separate crate so
//! that other users do not have to compile kube-runtime.

use std::collections::{HashMap, VecDeque};

use futures::Stream;
use kube_runtime::watcher;
use opkit_cache::{Delta, Event, Listener, Stored};
use opkit_client::{Object, ObjectKey};
use tracing::warn;

/// Returns the events of a listener as a stream of watcher events: `Init`, an `InitApply` for each
/// object of the first list, `InitDone`, and then `Apply` and `Delete`.
///
/// Like kube's own watcher, the stream never sends a `Delete` before `InitDone`, because kube's
/// store would ignore it. An object that is deleted before the end of the first list is sent as a
/// `Delete` after `InitDone`. The stream never ends and never fails. Objects that cannot be decoded
/// as `K` are left out. A [resync](Listener::resync) sends each object as an `Apply`.
///
/// # Examples
/// ```
/// use futures::Stream;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_runtime::WatchStreamExt;
/// use opkit_cache::InformerFactory;
/// use opkit_kube_streams::watcher_events;
///
/// /// Every config map that exists or is created, and every change of one.
/// fn touched(factory: &InformerFactory) -> impl Stream<Item = ConfigMap> {
///     let listener = factory.informer::<ConfigMap>().informer().listen();
///     let maps = watcher_events::<ConfigMap>(listener).touched_objects();
///     futures::StreamExt::filter_map(maps, async |map| map.ok())
/// }
/// ```
pub fn watcher_events<K: Object>(
    listener: Listener,
) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send {
    let events = Events {
        listener,
        pending: VecDeque::from([watcher::Event::Init]),
        synced: false,
        deleted: HashMap::new(),
    };
    futures::stream::unfold(events, |mut events| async move {
        let event = events.next().await;
        Some((Ok(event), events))
    })
}

struct Events<K> {
    listener: Listener,
    /// Events to send before the next event of the listener is read.
    pending: VecDeque<watcher::Event<K>>,
    synced: bool,
    /// Objects that were deleted before the first list was complete.
    deleted: HashMap<ObjectKey, K>,
}

impl<K: Object> Events<K> {
    async fn next(&mut self) -> watcher::Event<K> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            match self.listener.recv().await {
                Event::Synced => {
                    self.synced = true;
                    self.pending.push_back(watcher::Event::InitDone);
                    let deleted = std::mem::take(&mut self.deleted).into_values();
                    self.pending.extend(deleted.map(watcher::Event::Delete));
                }
                Event::Delta(delta) => self.take(&delta),
                _ => {}
            }
        }
    }

    fn take(&mut self, delta: &Delta) {
        let last = delta.last.as_ref().map(|last| &last.object);
        let deleted = last
            .or(delta.old.as_ref())
            .filter(|_| delta.new.is_none() || delta.is_recreated());
        let (deleted, new) = (
            deleted.and_then(object),
            delta.new.as_ref().and_then(object),
        );
        if self.synced {
            self.pending.extend(deleted.map(watcher::Event::Delete));
            self.pending.extend(new.map(watcher::Event::Apply));
            return;
        }
        match (new, deleted) {
            (Some(new), _) => {
                self.deleted.remove(&delta.key);
                self.pending.push_back(watcher::Event::InitApply(new));
            }
            (None, Some(deleted)) => {
                self.deleted.insert(delta.key.clone(), deleted);
            }
            (None, None) => {}
        }
    }
}

/// Returns a copy of a cached object, because kube's events own their objects. Returns `None` if
/// the object is not a `K`.
fn object<K: Object>(stored: &Stored) -> Option<K> {
    match stored.get::<K>() {
        Ok(object) => Some(K::clone(&object)),
        Err(error) => {
            warn!(%error, "object left out of the stream: it does not match its Rust type");
            None
        }
    }
}

#[cfg(test)]
mod tests;
