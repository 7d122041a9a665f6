//! Informer under test, with the methods that the model needs.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit_client::ObjectKey;
use tokio_util::sync::CancellationToken;

use super::Fault;
use super::server::{Key, NAMES, NAMESPACES, OWNERS, Object, Response};
use crate::object::Codec;
use crate::shard::Part;
use crate::sink::Sink;
use crate::{Informer, InformerOptions, Listener, ObjectError, Owner, Stored};

pub(super) struct Subject {
    informer: Informer,
    fault: Fault,
}

impl Subject {
    pub(super) fn new(options: InformerOptions, fault: Fault) -> Self {
        let codec = Codec::of::<ConfigMap>();
        let stop = CancellationToken::new();
        let informer = Informer::new(codec, options, None, 1, stop);
        if let Fault::Overlay(fault) = fault {
            informer.inject(fault);
        }
        Self { informer, fault }
    }

    pub(super) fn split(&self, parts: Vec<Part>) -> Vec<Box<dyn Sink>> {
        let split = self.informer.split(parts, false);
        let boxed = |sink| -> Box<dyn Sink> { Box::new(sink) };
        split.sinks.into_iter().map(boxed).collect()
    }

    pub(super) fn listen(&self) -> Listener {
        self.informer.listen()
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.informer.last_error()
    }

    /// Reports whether the overlay has writes or deletions that the watch has not reported yet.
    pub(super) fn has_overlay(&self) -> bool {
        self.informer.overlay_len() > 0
    }

    /// Returns the writes and deletions in the overlay as text.
    pub(super) fn overlay_text(&self) -> String {
        self.informer.overlay_text()
    }

    /// Passes the response to a write of the process under test to the informer.
    pub(super) fn observe(&self, response: &Response) {
        match response {
            Response::Object(object)
                if self.fault == Fault::TerminatingIsGone && object.is_deleting =>
            {
                self.observe_deletion(&object.key, &object.uid, None);
            }
            Response::Object(object) => {
                let json = object.json().to_string();
                self.informer.observe_response(json.as_bytes());
            }
            Response::Gone { key, uid, known } => self.observe_deletion(key, uid, *known),
        }
    }

    fn observe_deletion(&self, key: &Key, uid: &str, known: Option<u64>) {
        let key = ObjectKey::from((key.namespace, key.name.as_str()));
        let known = known.map(|version| version.to_string());
        self.informer.observe_deletion(&key, uid, known.as_deref());
    }

    pub(super) fn get(&self, key: &Key) -> Option<Object> {
        let key = ObjectKey::from((key.namespace, key.name.as_str()));
        self.informer.stored(&key).as_ref().map(read)
    }

    /// Returns all objects that the informer stores, ordered by name.
    pub(super) fn contents(&self) -> Vec<Object> {
        let names = |namespace| (0..NAMES).map(move |n| (namespace, format!("o{n}")));
        let keys = NAMESPACES.into_iter().flat_map(names);
        let found: Vec<_> = keys
            .filter_map(|(namespace, name)| self.get(&Key { namespace, name }))
            .collect();
        assert_eq!(found.len(), self.informer.len());
        found
    }
}

/// Converts a stored object into an object of the model.
pub(super) fn read(stored: &Stored) -> Object {
    let meta = stored.meta();
    let is_evicted = |error: &ObjectError| matches!(error, ObjectError::Evicted { .. });
    Object {
        key: key(&stored.key()),
        uid: meta.uid().unwrap_or_default().into_owned(),
        version: stored.version(),
        is_broken: stored.any().is_err_and(|error| !is_evicted(&error)),
        is_selected: meta.label("app").as_deref() == Some("web"),
        is_deleting: meta.is_deleting(),
        finalizers: meta.finalizers().len(),
        owners: owners(stored),
    }
}

fn owners(stored: &Stored) -> Vec<&'static str> {
    let owners = stored.meta().owners().into_iter();
    let uid = |owner: Owner<'_>| OWNERS.into_iter().find(|uid| *uid == owner.uid);
    owners.map(|owner| uid(owner).unwrap()).collect()
}

pub(super) fn key(key: &ObjectKey) -> Key {
    let namespace = key.namespace.as_deref();
    let namespace = NAMESPACES.into_iter().find(|name| Some(*name) == namespace);
    Key {
        namespace: namespace.unwrap(),
        name: key.name.clone(),
    }
}
