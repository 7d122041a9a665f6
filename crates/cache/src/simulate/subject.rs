//! What is tested: an informer, as far as the model needs to see it.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit_client::ObjectKey;
use tokio_util::sync::CancellationToken;

use super::server::{Key, NAMESPACES, Object};
use crate::object::Codec;
use crate::shard::Part;
use crate::sink::Sink;
use crate::{Informer, InformerOptions, Listener, Stored};

pub(super) struct Subject {
    informer: Informer,
}

impl Subject {
    pub(super) fn new() -> Self {
        let codec = Codec::of::<ConfigMap>();
        let options = InformerOptions::default();
        let stop = CancellationToken::new();
        Subject {
            informer: Informer::new(codec, options, None, 1, stop),
        }
    }

    pub(super) fn split(&self, parts: Vec<Part>) -> Vec<Box<dyn Sink>> {
        let (sinks, _) = self.informer.split(parts);
        let boxed = |sink| -> Box<dyn Sink> { Box::new(sink) };
        sinks.into_iter().map(boxed).collect()
    }

    pub(super) fn listen(&self) -> Listener {
        self.informer.listen()
    }

    pub(super) fn is_synced(&self) -> bool {
        self.informer.is_synced()
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.informer.last_error()
    }

    pub(super) fn observe(&self, object: &Object) {
        self.informer.observe_answer(object.json().as_bytes());
    }

    pub(super) fn observe_deletion(&self, object: &Object) {
        let key = ObjectKey::from((object.key.namespace, object.key.name.as_str()));
        self.informer.observe_deletion(&key, &object.uid);
    }

    pub(super) fn get(&self, key: &Key) -> Option<Object> {
        let key = ObjectKey::from((key.namespace, key.name.as_str()));
        self.informer.stored(&key).as_ref().map(read)
    }

    /// Everything, in the order of names.
    pub(super) fn contents(&self) -> Vec<Object> {
        let names = |namespace| (0..10).map(move |n| (namespace, format!("o{n}")));
        let keys = NAMESPACES.into_iter().flat_map(names);
        let found: Vec<_> = keys
            .filter_map(|(namespace, name)| self.get(&Key { namespace, name }))
            .collect();
        assert_eq!(found.len(), self.informer.len());
        found
    }
}

/// What an object in the store says.
pub(super) fn read(stored: &Stored) -> Object {
    let meta = stored.meta();
    Object {
        key: key(&stored.key()),
        uid: meta.uid().unwrap_or_default().into_owned(),
        version: stored.version(),
        is_broken: stored.any().is_err(),
    }
}

pub(super) fn key(key: &ObjectKey) -> Key {
    let namespace = key.namespace.as_deref();
    let namespace = NAMESPACES.into_iter().find(|name| Some(*name) == namespace);
    Key {
        namespace: namespace.unwrap(),
        name: key.name.clone(),
    }
}
