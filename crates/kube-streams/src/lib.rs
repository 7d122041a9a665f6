//! What an informer tells, in the words of kube-runtime.
//!
//! kube's helpers for streams (`WatchStreamExt`: predicates, `applied_objects`, `reflect`) take
//! streams of [`watcher::Event`]. [`watcher_events`] makes one of a listener, so they compose with
//! informers: the watch is shared, survives gaps exactly, and deletes are told. It is a room of its
//! own because nobody else should pay for compiling kube-runtime.

use std::collections::{HashMap, VecDeque};

use futures::Stream;
use kube_runtime::watcher;
use opkit_cache::{Delta, Event, Listener, Stored};
use opkit_client::{Object, ObjectKey};
use tracing::warn;

/// The events of a listener: `Init`, an `InitApply` for each object of the first list, `InitDone`,
/// then `Apply` and `Delete`. What is gone before the first list is complete is a `Delete` after
/// `InitDone`: as with kube's own watcher none comes before, where kube's store would not hear it.
/// The stream never ends and never fails. An object that does not fit `K` is left out; what a
/// [resync](Listener::resync) tells again is an `Apply`.
///
/// # Examples
/// ```
/// use futures::Stream;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_runtime::WatchStreamExt;
/// use opkit_cache::InformerFactory;
/// use opkit_kube_streams::watcher_events;
///
/// /// Every config map that is there or comes, and every change of it.
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
        ready: VecDeque::from([watcher::Event::Init]),
        synced: false,
        gone: HashMap::new(),
    };
    futures::stream::unfold(events, |mut events| async move {
        let event = events.next().await;
        Some((Ok(event), events))
    })
}

struct Events<K> {
    listener: Listener,
    /// What is to be told before the listener is asked again.
    ready: VecDeque<watcher::Event<K>>,
    synced: bool,
    /// What went before the first list was complete.
    gone: HashMap<ObjectKey, K>,
}

impl<K: Object> Events<K> {
    async fn next(&mut self) -> watcher::Event<K> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            match self.listener.recv().await {
                Event::Synced => {
                    self.synced = true;
                    self.ready.push_back(watcher::Event::InitDone);
                    let gone = std::mem::take(&mut self.gone).into_values();
                    self.ready.extend(gone.map(watcher::Event::Delete));
                }
                Event::Delta(delta) => self.take(&delta),
                _ => {}
            }
        }
    }

    fn take(&mut self, delta: &Delta) {
        let last = delta.last.as_ref().map(|last| &last.object);
        let gone = last
            .or(delta.old.as_ref())
            .filter(|_| delta.new.is_none() || delta.is_recreated());
        let (gone, new) = (gone.and_then(object), delta.new.as_ref().and_then(object));
        if self.synced {
            self.ready.extend(gone.map(watcher::Event::Delete));
            self.ready.extend(new.map(watcher::Event::Apply));
            return;
        }
        match (new, gone) {
            (Some(new), _) => {
                self.gone.remove(&delta.key);
                self.ready.push_back(watcher::Event::InitApply(new));
            }
            (None, Some(gone)) => {
                self.gone.insert(delta.key.clone(), gone);
            }
            (None, None) => {}
        }
    }
}

/// kube's events own their objects.
fn object<K: Object>(stored: &Stored) -> Option<K> {
    match stored.get::<K>() {
        Ok(object) => Some(K::clone(&object)),
        Err(error) => {
            warn!(%error, "an object is left out of a stream");
            None
        }
    }
}

#[cfg(test)]
mod tests;
